// SPDX-License-Identifier: Apache-2.0
// Which products the library computes, what remains for a kernel, and what the stand-in for
// cuBLASLt, which checks its arguments, makes of them.
#include <gmock/gmock.h>

#include <cmath>

#include "codegen/kernel/literal.h"
#include "cuda_runtime/device/device.h"
#include "cuda_runtime/products/product.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "tests/cuda_runtime/emulated.h"

namespace forge::cuda {
namespace {

using ir::Value;

// ---- which products they are --------------------------------------------------------------------

class ProductFormTest : public testing::Test {
 protected:
  Value Argument(ir::Dims shape, DType t = DType::kF32) {
    return f_.Argument(fmt::format("x{}", f_.arguments().size()),
                       ir::Type::Tensor(t, std::move(shape)));
  }
  std::optional<ProductOfBody> Of(Value result) {
    f_.Return("y", result);
    EXPECT_TRUE(f_.status().ok()) << f_.status();
    const auto region = codegen::Region::Of(f_, CapsOf(DeviceFacts{}));
    EXPECT_TRUE(region.ok()) << region.status();
    return region.ok() ? ProductIn(*region) : std::nullopt;
  }
  ir::Function f_{"body"};
};

TEST_F(ProductFormTest, IsWholeWhereNothingFollows) {
  const auto p = Of(f_(ir::MatMul{false, true}, {Argument({5, 7}), Argument({3, 7})}));
  ASSERT_TRUE(p);
  EXPECT_EQ(p->rest, nullptr);
  EXPECT_EQ(std::tie(p->form.m, p->form.n, p->form.k, p->form.batch), std::tuple(5, 3, 7, 1));
  EXPECT_TRUE(p->form.transpose_b);
}

TEST_F(ProductFormTest, TakesBiasAndRelu) {
  const Value product = f_(ir::MatMul{}, {Argument({5, 7}), Argument({7, 3})});
  const auto p = Of(f_(ir::Relu{}, {f_(ir::Add{}, {Argument({3}), product})}));
  ASSERT_TRUE(p);
  EXPECT_TRUE(p->form.bias && p->form.relu);
  EXPECT_EQ(p->bias, 2u);
  EXPECT_EQ(p->rest, nullptr);
}

TEST_F(ProductFormTest, LeavesWhatTheLibraryLacks) {
  const Value product = f_(ir::MatMul{}, {Argument({5, 7}), Argument({7, 3})});
  const auto p = Of(f_(ir::Tanh{}, {f_(ir::Add{}, {product, Argument({5, 3})})}));
  ASSERT_TRUE(p);
  EXPECT_FALSE(p->form.bias || p->form.relu);
  ASSERT_NE(p->rest, nullptr);
  EXPECT_EQ(p->rest->nodes().size(), 2u);
  EXPECT_EQ(p->rest->arguments().size(), 4u);
}

TEST_F(ProductFormTest, ABiasOfRowsIsNone) {
  const Value product = f_(ir::MatMul{}, {Argument({3, 7}), Argument({7, 3})});
  const auto p = Of(f_(ir::Add{}, {product, Argument({3, 1})}));
  ASSERT_TRUE(p);
  EXPECT_FALSE(p->form.bias);
  EXPECT_NE(p->rest, nullptr);
}

TEST_F(ProductFormTest, AProductThatOthersReadIsNoEpilogue) {
  const Value product = f_(ir::MatMul{}, {Argument({5, 7}), Argument({7, 3})});
  f_.Return("product", product);
  const auto p = Of(f_(ir::Relu{}, {product}));
  ASSERT_TRUE(p);
  EXPECT_NE(p->rest, nullptr);
}

TEST_F(ProductFormTest, RowsOfABatchAreOneMatrix) {
  const auto p = Of(f_(ir::MatMul{}, {Argument({4, 2, 5, 7}), Argument({7, 3})}));
  ASSERT_TRUE(p);
  EXPECT_EQ(std::tie(p->form.m, p->form.batch), std::tuple(40, 1));
}

TEST_F(ProductFormTest, BatchesHaveStrides) {
  const auto p = Of(f_(ir::MatMul{}, {Argument({5, 7}), Argument({6, 7, 3})}));
  ASSERT_TRUE(p);
  EXPECT_EQ(std::tie(p->form.m, p->form.batch, p->form.a_stride, p->form.b_stride),
            std::tuple(5, 6, 0, 21));
}

TEST_F(ProductFormTest, IsNoneOfBatchesThatBroadcastInParts) {
  EXPECT_FALSE(Of(f_(ir::MatMul{}, {Argument({4, 1, 5, 7}), Argument({2, 7, 3})})));
}

TEST_F(ProductFormTest, IsNoneOfOperandsThatAreComputed) {
  const Value a = f_(ir::Relu{}, {Argument({5, 7})});
  EXPECT_FALSE(Of(f_(ir::MatMul{}, {a, Argument({7, 3})})));
}

TEST_F(ProductFormTest, IsNoneWithoutElements) {
  EXPECT_FALSE(Of(f_(ir::MatMul{}, {Argument({5, 0}), Argument({0, 3})})));
}

// ---- what is computed ---------------------------------------------------------------------------

double Element(DType t, int64_t i) {
  const double v = static_cast<double>(i * 37 % 19) - 9;  // exact in every type
  return t == DType::kF64 ? v / 8 : v / 4;
}

class ProductTest : public EmulatedTest {
 protected:
  ProductTest() : EmulatedTest(FORGE_BINARY_DIR) {}
  // Pinned memory, which host and device access at one address.
  CudaBufferRef Filled(DType t, int64_t elements) {
    auto buffer = CudaBuffer::Create(context_, Memory::kUpload,
                                     static_cast<uint64_t>(elements) * BitWidth(t) / 8);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    for (int64_t i = 0; i < elements; ++i) Put(**buffer, t, i, Element(t, i));
    return *buffer;
  }
  static void Put(const CudaBuffer& b, DType t, int64_t i, double v) {
    const uint64_t bits = codegen::ToBits(t, v);
    std::memcpy(b.mapped() + i * BitWidth(t) / 8, &bits, static_cast<size_t>(BitWidth(t)) / 8);
  }
  static double Get(const CudaBuffer& b, DType t, int64_t i) {
    uint64_t bits = 0;
    std::memcpy(&bits, b.mapped() + i * BitWidth(t) / 8, static_cast<size_t>(BitWidth(t)) / 8);
    return codegen::FloatOf(t, bits);
  }
  void Launch(const ProductForm& f, const Product::Operands& operands) {
    const auto product = Product::Make(library_, f);
    ASSERT_TRUE(product.ok()) << product.status();
    const Context::Current current(*context_);
    CuStream stream = nullptr;
    ASSERT_EQ(api_.create_stream(&stream, kCuStreamNonBlocking), kCuSuccess);
    const absl::Status launched = (*product)->Launch(stream, operands);
    ASSERT_TRUE(launched.ok()) << launched;
    ASSERT_EQ(api_.synchronize_stream(stream), kCuSuccess);
    api_.destroy_stream(stream);
  }
  void ExpectRight(const ProductForm& f) {
    SCOPED_TRACE(fmt::format("{} {}x{}x{} batch {} transposed {} {} bias {} relu {}", Name(f.dtype),
                             f.m, f.n, f.k, f.batch, f.transpose_a, f.transpose_b, f.bias, f.relu));
    const auto count = [&](int64_t one, int64_t stride) { return one + stride * (f.batch - 1); };
    const CudaBufferRef a = Filled(f.dtype, count(f.m * f.k, f.a_stride)),
                        b = Filled(f.dtype, count(f.k * f.n, f.b_stride)),
                        c = Filled(f.dtype, f.batch * f.m * f.n), bias = Filled(f.dtype, f.n),
                        workspace = Filled(DType::kU8, 1 << 16);
    Launch(f, {a->address(), b->address(), f.bias ? bias->address() : 0, c->address(),
               workspace->address()});
    for (int64_t n = 0; n < f.batch; ++n)
      for (int64_t i = 0; i < f.m; ++i)
        for (int64_t j = 0; j < f.n; ++j) {
          double sum = f.bias ? Element(f.dtype, j) : 0;
          for (int64_t l = 0; l < f.k; ++l)
            sum += Element(f.dtype, n * f.a_stride + (f.transpose_a ? l * f.m + i : i * f.k + l)) *
                   Element(f.dtype, n * f.b_stride + (f.transpose_b ? j * f.k + l : l * f.n + j));
          if (f.relu) sum = std::max(sum, 0.0);
          const double rounded = codegen::FloatOf(f.dtype, codegen::ToBits(f.dtype, sum));
          ASSERT_EQ(Get(*c, f.dtype, (n * f.m + i) * f.n + j), rounded)
              << n << " " << i << " " << j;
        }
  }
};

TEST_F(ProductTest, OfEachTypeAndLayout) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64})
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        ExpectRight({.dtype = t, .transpose_a = a, .transpose_b = b, .m = 9, .n = 5, .k = 70});
}

TEST_F(ProductTest, OfBatchesAndWithEpilogues) {
  ExpectRight({.m = 4, .n = 6, .k = 3, .batch = 5, .a_stride = 12, .b_stride = 18});
  ExpectRight({.m = 4, .n = 6, .k = 3, .batch = 5, .a_stride = 0, .b_stride = 18});
  for (const bool relu : {false, true})
    for (const bool bias : {false, true})
      ExpectRight({.m = 7, .n = 6, .k = 80, .bias = bias, .relu = relu});
}

TEST_F(ProductTest, RoundsF32OnRequest) {
  const double v = 1 + 0x1p-12;  // 1 in tf32
  const CudaBufferRef a = Filled(DType::kF32, 16), b = Filled(DType::kF32, 16),
                      c = Filled(DType::kF32, 16);
  for (int64_t i = 0; i < 16; ++i) {
    Put(*a, DType::kF32, i, v);
    Put(*b, DType::kF32, i, i % 5 == 0 ? 1 : 0);
  }
  for (const bool rounds : {false, true}) {
    Launch({.rounds = rounds, .m = 4, .n = 4, .k = 4},
           {a->address(), b->address(), 0, c->address()});
    EXPECT_EQ(Get(*c, DType::kF32, 7), rounds ? 1 : v);
  }
}

// ---- through the device -------------------------------------------------------------------------

int launched_graphs = 0;
CuResult (*real_launch_graph)(CuGraphExec exec, CuStream stream) = nullptr;

class ProductDeviceTest : public EmulatedTest {
 protected:
  ProductDeviceTest() : EmulatedTest(FORGE_BINARY_DIR) {}
  void Adapt(DriverApi& api) override {
    launched_graphs = 0;
    real_launch_graph = api.launch_graph;
    api.launch_graph = [](CuGraphExec exec, CuStream stream) {
      ++launched_graphs;
      return real_launch_graph(exec, stream);
    };
  }
  std::shared_ptr<CudaDevice> Device(bool graphs) {
    auto device = CudaDevice::Open(
        {context_, {.name = "emulated"}, Unavailable("no NVRTC"), library_, graphs},
        {.threads = 2, .cache = false});
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? *device : nullptr;
  }
  static absl::StatusOr<ProgramRef> Compile(CudaDevice& device, const ir::AnyOp& op,
                                            const ir::Types& in, std::string choice = {}) {
    FORGE_ASSIGN_OR_RETURN(const ir::Types out, op.Infer(in));
    const CompileRequest request{
        .op = &op, .in = in, .out = out, .name = "product", .choice = std::move(choice)};
    return device.Compile({&request, 1}, [](size_t) { return true; })[0];
  }
  static ir::Types Matrices(int64_t m, int64_t k, int64_t n) {
    return {ir::Type::Tensor(DType::kF32, {m, k}), ir::Type::Tensor(DType::kF32, {k, n})};
  }
};

TEST_F(ProductDeviceTest, TheLibraryComputesLargeProductsOnly) {
  const auto device = Device(false);
  const auto large = Compile(*device, ir::MatMul{}, Matrices(128, 128, 128));
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ((*large)->kernel(), "cublaslt");
  EXPECT_GT((*large)->scratch_bytes(), 0u);  // its workspace
  // Kernels need NVRTC, which this device lacks.
  EXPECT_TRUE(absl::IsUnavailable(Compile(*device, ir::MatMul{}, Matrices(16, 16, 16)).status()));
  EXPECT_TRUE(Compile(*device, ir::MatMul{}, Matrices(16, 16, 16), "cublaslt").ok());
}

TEST_F(ProductDeviceTest, TheChoiceIsOneOfThoseThatTuningTries) {
  const auto device = Device(false);
  const ir::AnyOp op = ir::MatMul{};
  const auto first = [&](const ir::Types& in) {
    const ir::Types out = *op.Infer(in);
    return device->Choices({.op = &op, .in = in, .out = out, .name = "product"}, 3);
  };
  EXPECT_EQ(first(Matrices(128, 128, 128)).front(), "cublaslt");
  EXPECT_EQ(first(Matrices(16, 16, 16)).back(), "cublaslt");
  const ir::Types in = Matrices(16, 16, 16), out = *op.Infer(in);
  const CompileRequest wanted{
      .op = &op, .in = in, .out = out, .name = "product", .choice = "cublaslt"};
  ASSERT_TRUE(device->Prefer(wanted).ok());
  EXPECT_TRUE(Compile(*device, op, in).ok());
}

// Runs y = a b on buffers of the host, several times with other numbers, and returns what differs.
TEST_F(ProductDeviceTest, ReplaysAreGraphs) {
  for (const bool graphs : {true, false}) {
    SCOPED_TRACE(graphs);
    launched_graphs = 0;
    const auto device = Device(graphs);
    const auto program = Compile(*device, ir::MatMul{}, Matrices(128, 128, 128));
    ASSERT_TRUE(program.ok()) << program.status();
    constexpr int64_t kBytes = 128 * 128 * 4;
    const auto use = [](uint32_t slot, bool writes = false) {
      return Operand{.slot = slot, .offset = 0, .bytes = kBytes, .writes = writes};
    };
    Operand scratch{.slot = 3,
                    .offset = 0,
                    .bytes = static_cast<int64_t>((*program)->scratch_bytes()),
                    .writes = true};
    const Step steps[] = {
        {.program = nullptr, .operands = {use(4), use(0, true)}, .label = "upload"},
        {.program = *program,
         .operands = {use(0), use(1), use(2, true), scratch},
         .label = "product"}};
    const SlotSpec slots[] = {{kBytes, true},
                              {kBytes, true},
                              {kBytes, true},
                              {(*program)->scratch_bytes(), true},
                              {kBytes, true}};
    const auto segment = device->Record({.steps = steps, .slots = slots});
    ASSERT_TRUE(segment.ok()) << segment.status();
    std::vector<BufferRef> buffers;
    for (const SlotSpec& s : slots) buffers.push_back(*device->Allocate(Memory::kUpload, s.bytes));
    const auto floats = [&](size_t n) {
      return reinterpret_cast<float*>(device->Map(*buffers[n])->data());
    };
    for (int64_t i = 0; i < 128 * 128; ++i) floats(1)[i] = i % 129 == 0 ? 2.0f : 0.0f;
    for (int run = 0; run < 4; ++run) {
      for (int64_t i = 0; i < 128 * 128; ++i) floats(4)[i] = static_cast<float>(i + run);
      ASSERT_TRUE(device->Run(*segment, {.slots = buffers}).ok());
      for (int64_t i = 0; i < 128 * 128; ++i)
        ASSERT_EQ(floats(2)[i], 2 * static_cast<float>(i + run)) << run;
    }
    EXPECT_EQ(launched_graphs, graphs ? 3 : 0);
  }
}

}  // namespace
}  // namespace forge::cuda
