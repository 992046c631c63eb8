// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/matmul.h"

#include <optional>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/kernels/product/byte_products.h"
#include "cpu_runtime/onednn/library_call.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/product/matmul_integer.h"

namespace forge::cpu {
namespace {

// A matrix operand with its transposition undone and axes of extent 1 in front up to `rank`.
View MatrixView(View v, bool transposed, size_t rank) {
  const size_t n = v.shape.size();
  if (transposed) {
    std::swap(v.shape[n - 2], v.shape[n - 1]);
    std::swap(v.strides[n - 2], v.strides[n - 1]);
  }
  // The stride of an axis of extent 1 means nothing, but the library wants it not to be small.
  const int64_t stride = std::max<int64_t>(v.limit(), 1);
  v.shape.insert(v.shape.begin(), rank - n, 1);
  v.strides.insert(v.strides.begin(), rank - n, stride);
  return v;
}

struct Product {
  View a, b, y;  // [..., m, k], [..., k, n], [..., m, n]: of equal rank
};

ir::MatrixProduct OpOf(const ir::Node& node) {
  const auto* op = node.op.As<ir::MatMul>();
  return op != nullptr ? op->product() : node.op.As<ir::MatMulInteger>()->product();
}

Product ProductOf(const ir::MatrixProduct& op, const View& a, const View& b, const View& y) {
  const size_t rank = y.shape.size();
  return {MatrixView(a, op.transpose_a, rank), MatrixView(b, op.transpose_b, rank), y};
}

// Joins the batch of `a` with its rows where `b` is one matrix: a larger product is a faster one.
// False where that cannot be.
bool JoinBatch(Product& p) {
  const size_t rank = p.y.shape.size();
  if (rank < 3) return false;
  int64_t rows = 1;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (p.b.shape[i] != 1 || p.a.shape[i] != p.y.shape[i]) return false;
    rows *= p.a.shape[i];
  }
  for (const View* v : {&p.a, &p.y}) {
    int64_t step = v->strides[rank - 2] * v->shape[rank - 2];
    for (size_t i = rank - 2; i-- > 0;) {
      if (v->shape[i] != 1 && v->strides[i] != step) return false;
      step *= v->shape[i];
    }
  }
  for (View* v : {&p.a, &p.b, &p.y}) {
    v->shape.erase(v->shape.begin(), v->shape.end() - 2);
    v->strides.erase(v->strides.begin(), v->strides.end() - 2);
  }
  p.a.shape[0] *= rows;
  p.y.shape[0] *= rows;
  if (p.a.shape[1] == 1) p.a.strides[1] = std::max<int64_t>(p.a.limit(), 1);  // see MatrixView
  return true;
}

// An operand of a post-op with the axes before its last one joined; nothing where memory does not
// hold them as one axis.
std::optional<View> JoinRows(const dnnl::memory::desc& operand) {
  const dnnl::memory::dims dims = operand.get_dims(), strides = operand.get_strides();
  int64_t rows = 1, stride = dims.back();
  for (size_t a = dims.size() - 1; a-- > 0;) {
    if (dims[a] == 1) continue;
    if (rows != 1 && strides[a] != stride * rows) return {};
    if (rows == 1) stride = strides[a];
    rows *= dims[a];
  }
  View v = DenseView(DType::kF32, {rows, dims.back()});
  v.strides = {stride, dims.back() == 1 ? 1 : strides.back()};
  return v;
}

// The operands of post-ops for joined rows; false where one varies along the batch alone.
bool JoinPostOps(const Product& joined, PostOps& post_ops) {
  dnnl::post_ops rebuilt;
  for (int i = 0; i < post_ops.ops.len(); ++i) {
    dnnl::algorithm algorithm;
    if (post_ops.ops.kind(i) == dnnl::primitive::kind::eltwise) {
      float alpha, beta;
      post_ops.ops.get_params_eltwise(i, algorithm, alpha, beta);
      rebuilt.append_eltwise(algorithm, alpha, beta);
      continue;
    }
    dnnl::memory::desc desc;
    post_ops.ops.get_params_binary(i, algorithm, desc);
    const std::optional<View> v = JoinRows(desc);
    if (!v || (v->shape[0] != 1 && v->shape[0] != joined.y.shape[0])) return false;
    rebuilt.append_binary(algorithm, DescOf(*v));
    for (auto& [position, operand] : post_ops.operands)
      if (position == i) operand.desc = DescOf(*v);
  }
  post_ops.ops = rebuilt;
  return true;
}

// Empty where the library cannot.  Throws dnnl::error.
dnnl::matmul::primitive_desc Describe(const Product& p, const dnnl::memory::desc& b,
                                      const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(post_ops);
  return {Engine(), DescOf(p.a), b, DescOf(p.y), attributes, /*allow_empty=*/true};
}

// Of the matrix that has row `row` of all rows of the result.
int64_t ElementsBeforeMatrix(const Product& p, const View& v, int64_t row) {
  return ElementsBefore(v, p.y.shape, row / p.y.shape[p.y.shape.size() - 2]);
}
int64_t ElementsBeforeRow(const Product& p, const View& v, int64_t row) {
  const size_t r = p.y.shape.size() - 2;
  return ElementsBeforeMatrix(p, v, row) + row % p.y.shape[r] * v.strides[r];
}

int64_t RowsOf(const Product& p) {
  const int64_t columns = p.y.shape.back();
  return columns == 0 ? 0 : p.y.elements() / columns;
}

// For f64, for what the library refuses, and for products over nothing.
template <class T>
class Loops final : public AnchorCall {
 public:
  Loops(Product p, uint32_t a, uint32_t b, int threads)
      : p_(std::move(p)), a_(a), b_(b), threads_(threads) {}
  std::string_view kernel() const override { return "matmul_loops"; }

  absl::Status Run(const Arguments& args) const override {
    const auto* a = reinterpret_cast<const T*>(args.operands[a_]);
    const auto* b = reinterpret_cast<const T*>(args.operands[b_]);
    auto* y = reinterpret_cast<T*>(args.out);
    ParallelParts({RowsOf(p_), 1, threads_}, [&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        Row(a + ElementsBeforeRow(p_, p_.a, row), b + ElementsBeforeMatrix(p_, p_.b, row),
            y + ElementsBeforeRow(p_, p_.y, row));
    });
    return absl::OkStatus();
  }

 private:
  void Row(const T* a, const T* b, T* y) const {
    const size_t r = p_.y.shape.size() - 2, c = r + 1;
    if (p_.b.strides[c] == 1 && p_.y.strides[c] == 1) return AddRows(a, b, y);
    for (int64_t j = 0; j < p_.y.shape[c]; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < p_.a.shape[c]; ++k)
        sum += a[k * p_.a.strides[c]] * b[k * p_.b.strides[r] + j * p_.b.strides[c]];
      y[j * p_.y.strides[c]] = sum;
    }
  }

  // The same in an order that vectors suit.
  void AddRows(const T* a, const T* b, T* y) const {
    const size_t r = p_.y.shape.size() - 2, c = r + 1;
    std::fill_n(y, p_.y.shape[c], T{0});
    for (int64_t k = 0; k < p_.a.shape[c]; ++k) {
      const T factor = a[k * p_.a.strides[c]];
      const T* from = b + k * p_.b.strides[r];
      for (int64_t j = 0; j < p_.y.shape[c]; ++j) y[j] += factor * from[j];
    }
  }

  Product p_;
  uint32_t a_, b_;
  int threads_;
};

// 0, step, 2 * step ..
std::vector<int64_t> Steps(int64_t count, int64_t step) {
  std::vector<int64_t> steps(static_cast<size_t>(count));
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<int64_t>(i) * step;
  return steps;
}

ByteProducts BytesOf(const Product& p, uint32_t a, uint32_t b, int threads) {
  const size_t r = p.y.shape.size() - 2, c = r + 1;
  ByteProducts bytes{.kernel = "matmul_bytes",
                     .rows = p.y.shape[r],
                     .columns = p.y.shape[c],
                     .a = {p.a.dtype, nullptr, p.a.strides[r], p.a.strides[c]},
                     .b = p.b.dtype,
                     .b_rows = Steps(p.a.shape[c], p.b.strides[r]),
                     .b_columns = Steps(p.y.shape[c], p.b.strides[c]),
                     .y_row_stride = p.y.strides[r],
                     .y_column_stride = p.y.strides[c],
                     .a_operand = a,
                     .b_operand = b,
                     .threads = threads};
  for (int64_t row = 0; row < RowsOf(p); row += bytes.rows)
    bytes.matrices.push_back({ElementsBeforeRow(p, p.a, row), ElementsBeforeMatrix(p, p.b, row),
                              ElementsBeforeRow(p, p.y, row)});
  return bytes;
}

class MatMulMaker {
 public:
  explicit MatMulMaker(const AnchorSite& site)
      : site_(site), node_(*site.task.anchor()), op_(OpOf(node_)) {
    a_ = *site.task.OperandOf(node_.in[0]);
    b_ = *site.task.OperandOf(node_.in[1]);
  }

  absl::StatusOr<MadeAnchor> Make() {
    const PackedEncoding* packed = PackedOf(site_.task.type(b_));
    if (packed) FORGE_RETURN_IF_ERROR(SetUnpackedView());
    const Product p =
        ProductOf(op_, site_.operands[a_], packed ? unpacked_ : site_.operands[b_], site_.out);
    const bool empty = p.a.elements() == 0 || p.b.elements() == 0;
    if (site_.out.dtype == DType::kF32 && !empty) {
      MadeAnchor made;
      FORGE_RETURN_IF_ERROR(Guarded("matmul", [&] { made = MakeLibraryCall(p, packed); }));
      if (made.call) return made;
    }
    if (packed) return Internal("the weights are packed, but oneDNN does not support the matmul");
    return MadeAnchor{MakeLoops(p), node_.first_out};
  }

 private:
  std::unique_ptr<AnchorCall> MakeLoops(Product p) const {
    const int threads = site_.settings.threads;
    if (site_.out.dtype == DType::kF64)
      return std::make_unique<Loops<double>>(std::move(p), a_, b_, threads);
    if (site_.out.dtype == DType::kF32)
      return std::make_unique<Loops<float>>(std::move(p), a_, b_, threads);
    Product joined = p;
    return MakeByteProducts(BytesOf(JoinBatch(joined) ? joined : p, a_, b_, threads));
  }

  absl::Status SetUnpackedView() {
    FORGE_ASSIGN_OR_RETURN(unpacked_, ComputedViewOf(site_.task.type(b_).With(ir::EncodingRef())));
    return absl::OkStatus();
  }

  // No call where the library has none.
  MadeAnchor MakeLibraryCall(Product p, const PackedEncoding* packed) {
    PostOps post_ops = PlanPostOps(site_.task, node_.first_out);
    Product joined = p;
    const bool joins = JoinBatch(joined);
    if (joins) p = std::move(joined);
    const dnnl::memory::desc b = packed ? packed->packed() : DescOf(p.b);
    const auto d = DescribeFast(site_.task, node_.first_out, post_ops, [&](PostOps& chain) {
      if (joins && !JoinPostOps(p, chain)) chain = PostOps{.value = node_.first_out};
      return Describe(p, b, chain.ops);
    });
    if (!d.get(true)) return {nullptr, node_.first_out};
    auto call = std::make_unique<LibraryCall>(d.impl_info_str());
    call->AddOperand(DNNL_ARG_SRC, d.src_desc(), a_);
    call->AddOperand(DNNL_ARG_WEIGHTS, d.weights_desc(), b_);
    call->AddPostOps(post_ops);
    call->Finish(dnnl::matmul(d), d.dst_desc(), d.scratchpad_desc());
    return {std::move(call), post_ops.value};
  }

  const AnchorSite& site_;
  const ir::Node& node_;
  const ir::MatrixProduct op_;
  uint32_t a_ = 0, b_ = 0;
  View unpacked_;
};

class MatMul final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    return IsAnchoredBy<ir::MatMul>(task) || IsAnchoredBy<ir::MatMulInteger>(task);
  }

  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kFloatTypes, t) && t != DType::kI32)
      return Verdict::No(fmt::format("matmul has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes(ComputedAs(t) == DType::kF32 ? "dnnl matmul" : "matmul loops");
  }

  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    ir::EncodingRef packed = PackedWeights(task);
    if (!packed) return {};
    ir::EncodingChoice dense{std::vector<ir::EncodingRef>(task.first_result()),
                             std::vector<ir::EncodingRef>(task.results()),
                             EstimateSeconds(task, settings)};
    ir::EncodingChoice with = dense;
    with.in[*task.OperandOf(task.anchor()->in[1])] = packed;
    dense.seconds *= kUnpackedCost;
    return {std::move(with), std::move(dense)};
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    return MakeAnchorProgram(task, settings,
                             [](const AnchorSite& site) { return MatMulMaker(site).Make(); });
  }

 private:
  static constexpr double kUnpackedCost = 1.2;

  // Of one matrix of floats; null where the library would take it as it is.
  static ir::EncodingRef PackedWeights(const Task& task) {
    const ir::Node& node = *task.anchor();
    const ir::Type& tb = task.type(*task.OperandOf(node.in[1]));
    if (ComputedAs(tb.dtype()) != DType::kF32 || tb.rank() != 2 || tb.encoding()) return nullptr;
    const auto a = ComputedViewOf(task.type(*task.OperandOf(node.in[0]))), b = ComputedViewOf(tb),
               y = ComputedViewOf(task.body().type(node.first_out).With(ir::EncodingRef()));
    if (!a.ok() || !b.ok() || !y.ok() || a->elements() == 0 || b->elements() == 0) return nullptr;
    Product p = ProductOf(OpOf(node), *a, *b, *y);
    if (p.y.shape.size() > 2 && !JoinBatch(p)) return nullptr;
    ir::EncodingRef packed;
    const absl::Status s = Guarded("matmul", [&] {
      const dnnl::memory::desc plain = DescOf(p.b);
      const auto d = Describe(p, AnyLayout(plain), {});
      if (d.get(true) && (d.weights_desc() != plain || tb.dtype() != b->dtype))
        packed = PackedEncoding::Make(plain, d.weights_desc());
    });
    return s.ok() ? packed : nullptr;
  }
};

}  // namespace

const Kernel& MatMulKernel() {
  static const MatMul kKernel;
  return kKernel;
}

}  // namespace forge::cpu
