// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/products/product_form.h"

#include <algorithm>

#include "ir/graph/copier.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/product/matmul.h"

namespace forge::cuda {
namespace {

// The argument that a value is.
std::optional<size_t> ArgumentAt(const ir::Function& body, uint32_t value) {
  const auto arguments = body.arguments();
  const auto at = std::find_if(arguments.begin(), arguments.end(),
                               [&](const auto& a) { return a.value == value; });
  if (at == arguments.end()) return std::nullopt;
  return static_cast<size_t>(at - arguments.begin());
}

bool IsPlain(const ir::Type& t) {
  return t && t.is_tensor() && t.encoding() == nullptr && t.rank() >= 2 &&
         std::all_of(t.shape().begin(), t.shape().end(),
                     [](const ir::Dim& d) { return d.is_constant() && d.constant() > 0; });
}

int64_t MatricesOf(const ir::Dims& shape) {
  int64_t n = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) n *= shape[i].constant();
  return n;
}

std::optional<ProductForm> FormOf(const ir::MatMul& op, const ir::Type& a, const ir::Type& b,
                                  const ir::Type& c) {
  if (!IsPlain(a) || !IsPlain(b) || !IsPlain(c)) return std::nullopt;
  const DType t = c.dtype();
  if (t != DType::kF32 && t != DType::kF16 && t != DType::kBF16 && t != DType::kF64)
    return std::nullopt;
  const ir::Dims &x = a.shape(), &y = b.shape(), &z = c.shape();
  ProductForm f{.dtype = t, .transpose_a = op.transpose_a, .transpose_b = op.transpose_b};
  f.m = z[z.size() - 2].constant();
  f.n = z.back().constant();
  f.k = x[x.size() - (op.transpose_a ? 2 : 1)].constant();
  const int64_t of_a = MatricesOf(x), of_b = MatricesOf(y);
  f.batch = MatricesOf(z);
  if (f.batch == 1) return f;
  if (of_b == 1 && !f.transpose_a && of_a == f.batch) {
    f.m *= f.batch;  // the rows of all matrices, one below the other
    f.batch = 1;
    return f;
  }
  // Others than one or all would broadcast along some axes.
  if ((of_a != 1 && of_a != f.batch) || (of_b != 1 && of_b != f.batch)) return std::nullopt;
  if (of_a != 1) f.a_stride = f.m * f.k;
  if (of_b != 1) f.b_stride = f.k * f.n;
  return f;
}

// The only node that reads a value, which is no result.
const ir::Node* OnlyUser(const ir::Function& body, uint32_t value) {
  for (const auto& r : body.results())
    if (r.value == value) return nullptr;
  const ir::Node* user = nullptr;
  for (const ir::Node& node : body.nodes())
    for (const uint32_t in : node.in)
      if (in == value) {
        if (user != nullptr) return nullptr;
        user = &node;
      }
  return user;
}

bool IsResult(const ir::Function& body, uint32_t value) {
  return body.results().size() == 1 && body.results()[0].value == value;
}

// Takes a bias along the columns and a ReLU, where nothing else follows; else what it took is void.
bool TakeEpilogue(const ir::Function& body, const ir::Node& product, ProductOfBody& out) {
  uint32_t value = product.first_out;
  size_t taken = 1;
  const ir::Node* next = OnlyUser(body, value);
  if (next != nullptr && next->op.Is<ir::Add>() && next->in.size() == 2) {
    const uint32_t other = next->in[next->in[0] == value ? 1 : 0];
    const std::optional<size_t> bias = ArgumentAt(body, other);
    const ir::Type& t = body.type(other);
    if (!bias || t.encoding() != nullptr || t.shape() != ir::Dims{ir::Dim(out.form.n)} ||
        body.type(next->first_out).shape() != body.type(value).shape())
      return false;
    out.form.bias = true;
    out.bias = *bias;
    value = next->first_out;
    ++taken;
    next = OnlyUser(body, value);
  }
  if (next != nullptr && next->op.Is<ir::Relu>()) {
    out.form.relu = true;
    value = next->first_out;
    ++taken;
  }
  return IsResult(body, value) && taken == body.nodes().size();
}

std::unique_ptr<ir::Function> RestOf(const ir::Function& body, const ir::Node& product) {
  auto rest = std::make_unique<ir::Function>(body.name());
  ir::Copier copy(body, *rest);
  copy.CopyArguments();
  copy.Set(product.first_out, rest->Argument("product", body.type(product.first_out)));
  for (const ir::Node& node : body.nodes())
    if (&node != &product) copy.CopyNode(node);
  return copy.Finish().ok() ? std::move(rest) : nullptr;
}

}  // namespace

std::optional<ProductOfBody> ProductIn(const codegen::Region& region) {
  const auto* op = region.AnchorAs<ir::MatMul>();
  if (op == nullptr || region.norm() != nullptr) return std::nullopt;
  const ir::Function& body = region.body();
  const ir::Node& product = *region.anchor();
  const std::optional<size_t> a = ArgumentAt(body, product.in[0]),
                              b = ArgumentAt(body, product.in[1]);
  if (!a || !b) return std::nullopt;
  const std::optional<ProductForm> form =
      FormOf(*op, body.type(product.in[0]), body.type(product.in[1]), body.type(product.first_out));
  if (!form) return std::nullopt;
  ProductOfBody out{.form = *form, .a = *a, .b = *b, .bias = 0, .rest = nullptr};
  if (TakeEpilogue(body, product, out)) return out;
  out.form = *form;
  out.rest = RestOf(body, product);
  return out.rest != nullptr ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace forge::cuda
