// SPDX-License-Identifier: Apache-2.0
// Kernels that must not pass, made by breaking good ones.
#include <gmock/gmock.h>

#include <functional>

#include "tests/codegen/kernels.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const Kernel& k, const Caps& caps = RichCaps()) {
  return Verify(k, caps).ToString();
}

Kernel Copy() {
  return MapKernel("copy", kF32, kF32, [](Val x) { return x * 2; });
}

Inst& Find(Kernel& k, Code code) {
  for (Block& b : k.blocks)
    for (Inst& i : b.insts)
      if (i.code == code) return i;
  ADD_FAILURE() << "no " << Info(code).name;
  return k.blocks[0].insts[0];
}

TEST(VerifyTest, AcceptsGoodKernels) {
  EXPECT_TRUE(Verify(Copy(), Caps{}).ok()) << Refusal(Copy(), Caps{});
  EXPECT_TRUE(Verify(TreeSum(), Caps{}).ok()) << Refusal(TreeSum(), Caps{});
}

TEST(VerifyTest, RefusesValuesUsedOutsideTheirBlock) {
  Kernel k = Copy();
  k.operands[Find(k, Code::kIf).args] = Find(k, Code::kLoad).result;
  EXPECT_THAT(Refusal(k), HasSubstr("is not seen there"));
}

TEST(VerifyTest, RefusesValuesMadeTwice) {
  Kernel k = Copy();
  Find(k, Code::kLoad).result = Find(k, Code::kBuiltin).result;
  EXPECT_THAT(Refusal(k), HasSubstr("made before"));
}

TEST(VerifyTest, RefusesAbsentValuesAndLists) {
  Kernel k = Copy();
  k.operands[Find(k, Code::kMul).args] = 12345;
  EXPECT_THAT(Refusal(k), HasSubstr("value 12345"));
  k = Copy();
  Find(k, Code::kMul).args = 0xffffffff;
  EXPECT_THAT(Refusal(k), HasSubstr("outside the list"));
}

TEST(VerifyTest, RefusesBlocksWithoutAnEnd) {
  Kernel k = Copy();
  k.blocks[1].insts.pop_back();
  EXPECT_THAT(Refusal(k), HasSubstr("does not end in a yield"));
}

TEST(VerifyTest, RefusesBlocksUsedTwice) {
  Kernel k = Copy();
  Find(k, Code::kIf).block = 0;
  EXPECT_THAT(Refusal(k), HasSubstr("used twice"));
}

TEST(VerifyTest, RefusesUnlikeTypes) {
  Kernel k = Copy();
  k.values[Find(k, Code::kLt).result].type = kI32;
  EXPECT_THAT(Refusal(k), HasSubstr("gives another type"));
  k = Copy();
  k.views[0].elem = kF32.Lanes(2);
  EXPECT_THAT(Refusal(k), HasSubstr("gives another type than the view's"));
}

TEST(VerifyTest, RefusesStoresIntoWhatIsOnlyRead) {
  Kernel k = Copy();
  k.views[1].writes = false, k.views[1].reads = true;
  EXPECT_THAT(Refusal(k), HasSubstr("the view is not written"));
}

TEST(VerifyTest, RefusesViewsThatDisagreeAboutTheirOperand) {
  Kernel k = Copy();
  k.views[1].operand = 0;
  EXPECT_THAT(Refusal(k), HasSubstr("another view of its operand"));
}

TEST(VerifyTest, RefusesPartsThatViewsDisagreeAbout) {
  Kernel k = Copy();
  k.views[1].operand = 2;
  k.views[0] = InParts(k.views[0], 2, 64);
  EXPECT_EQ(Refusal(k), "OK");
  EXPECT_THAT(ToText(k), HasSubstr("x = operand 0 .. 1 of 64: f32, reads"));
  k.views[0].parts = 3;
  EXPECT_THAT(Refusal(k), HasSubstr("view 0 'x': another view of its operand"));
  k.views[0] = InParts(k.views[0], 2, 0);
  EXPECT_THAT(Refusal(k), HasSubstr("has no parts, or empty ones"));
  k.views[0] = InParts(k.views[0], 2, 64);
  k.views.push_back(InParts(Reads("x4", kF32.Lanes(4), 0), 2, 16));
  EXPECT_EQ(Refusal(k), "OK");
  k.views.back().extent = 32;
  EXPECT_THAT(Refusal(k), HasSubstr("another view of its operand has other parts"));
}

TEST(VerifyTest, CountsPartsAmongTheOperands) {
  Kernel k = Copy();
  k.views[1].operand = 4;
  k.views[0] = InParts(k.views[0], 4, 64);
  EXPECT_THAT(Refusal(k, Caps{}), HasSubstr("5 operands, the device has 4"));
}

TEST(VerifyTest, RefusesTypesWithoutArithmetic) {
  Kernel k = Copy();
  k.views[0].elem = {DType::kBF16};
  EXPECT_THAT(Refusal(k), HasSubstr("live in integers"));
  k.views[0].elem = kBool;
  EXPECT_THAT(Refusal(k), HasSubstr("is u8"));
  k.views[0].elem = kF32;
  k.views[0].elem.use = MatrixUse::kA;
  EXPECT_THAT(Refusal(k), HasSubstr("held by a subgroup"));
  k.views[0].elem = Type::Matrix(DType::kF32, MatrixUse::kA, 8, 8);
  EXPECT_THAT(Refusal(k), HasSubstr("memory holds elements of matrices"));
}

TEST(VerifyTest, RefusesSharedMemoryOfNoElements) {
  Kernel k = Copy();
  k.views.push_back(Shared("none", kF32, 0));
  EXPECT_THAT(Refusal(k), HasSubstr("has no elements"));
}

// One product of matrices of 8 x 8; `shift` is what they are read from in shared memory.
Kernel MatrixProduct(const std::function<Val(Builder&)>& shift) {
  return MakeKernel("matrices", [&](Builder& b, Val) {
    const uint16_t tile = b.AddView(Shared("tile", {DType::kF16}, 256));
    const uint16_t out = b.AddView(Writes("y", kF32, 0));
    const auto load = [&](MatrixUse use) {
      return b.MatrixLoad(tile, Type::Matrix(DType::kF16, use, 8, 8), shift(b), b.Int(8), false);
    };
    const Val zero = b.Literal(Type::Matrix(DType::kF32, MatrixUse::kAccumulator, 8, 8), 0);
    const Val a = load(MatrixUse::kA), x = load(MatrixUse::kB);
    b.MatrixStore(out, b.Int(0), b.Int(8), b.MatrixMulAdd(a, x, zero));
  });
}

Caps CapsWithMatrices() {
  Caps caps = RichCaps();
  caps.matrices = {{.a = DType::kF16, .b = DType::kF16, .c = DType::kF32, .m = 8, .n = 8, .k = 8}};
  caps.memory_model = true;
  return caps;
}

TEST(VerifyTest, AcceptsMatricesOfTheDevice) {
  const Kernel k = MatrixProduct([](Builder& b) { return b.Builtin(BuiltinKind::kSubgroup) * 64; });
  EXPECT_TRUE(Verify(k, CapsWithMatrices()).ok()) << Refusal(k, CapsWithMatrices());
  EXPECT_THAT(Refusal(k), HasSubstr("no matrices f32<8, 8> = f16<8, 8> f16<8, 8>"));
  Caps forgetful = CapsWithMatrices();
  forgetful.memory_model = false;
  EXPECT_THAT(Refusal(k, forgetful), HasSubstr("needs Vulkan's memory model"));
}

TEST(VerifyTest, RefusesMatricesThatASubgroupDisagreesAbout) {
  const Kernel k = MatrixProduct([](Builder& b) { return b.Builtin(BuiltinKind::kLane); });
  EXPECT_THAT(Refusal(k), HasSubstr("may differ in the subgroup"));
}

TEST(VerifyTest, RefusesMatricesThatMayLieInSeveralParts) {
  Kernel k = MatrixProduct([](Builder& b) { return b.Int(0); });
  k.views[1] = InParts(k.views[1], 2, 64);
  EXPECT_THAT(Refusal(k, CapsWithMatrices()), HasSubstr("a matrix may lie in several parts"));
}

TEST(VerifyTest, RefusesProductsOfUnlikeMatrices) {
  Kernel k = MatrixProduct([](Builder& b) { return b.Int(0); });
  const Inst& product = Find(k, Code::kMatrixMulAdd);
  std::swap(k.operands[product.args], k.operands[product.args + 1]);
  EXPECT_THAT(Refusal(k), HasSubstr("takes an A, a B"));
  std::swap(k.operands[product.args], k.operands[product.args + 1]);
  k.values[k.operands[product.args]].type.cols = 4;
  EXPECT_THAT(Refusal(k), HasSubstr("its sizes differ"));
}

// Stores every element of a matrix where `place` says.
Kernel ByElements(const std::function<Val(Builder&, Val row, Val column)>& place,
                  Space space = Space::kGlobal) {
  return MakeKernel("elements", [&](Builder& b, Val) {
    const uint16_t out = space == Space::kGlobal ? b.AddView(Writes("y", kF32, 0))
                                                 : b.AddView({.name = "y",
                                                              .space = space,
                                                              .elem = kF32,
                                                              .extent = 64,
                                                              .reads = true,
                                                              .writes = true});
    const Val ones = b.Literal(Type::Matrix(DType::kF32, MatrixUse::kAccumulator, 8, 8), 1);
    b.ForElements(ones,
                  [&](Val row, Val column, Val v) { b.Store(out, place(b, row, column), v); });
  });
}

TEST(VerifyTest, AcceptsElementsOfMatricesWhereKernelsSeeThem) {
  Caps caps = CapsWithMatrices();
  const Kernel k = ByElements([](Builder& b, Val row, Val column) {
    return b.Builtin(BuiltinKind::kSubgroup) * 64 + row * 8 + column;
  });
  EXPECT_THAT(Refusal(k, caps), HasSubstr("needs elements of cooperative matrices"));
  caps.matrix_elements = true;
  EXPECT_TRUE(Verify(k, caps).ok()) << Refusal(k, caps);
  EXPECT_THAT(ToText(k), HasSubstr("for elements %"));
}

TEST(VerifyTest, RefusesWhatInvocationsDisagreeAboutAroundElements) {
  const Kernel k =
      ByElements([](Builder& b, Val row, Val) { return b.Builtin(BuiltinKind::kLane) * 64 + row; });
  EXPECT_THAT(Refusal(k), HasSubstr("may differ in the subgroup"));
  const auto in_order = [](Builder&, Val row, Val column) { return row * 8 + column; };
  EXPECT_THAT(Refusal(ByElements(in_order, Space::kPrivate)), HasSubstr("a private view"));
  const Kernel barrier = ByElements([](Builder& b, Val row, Val) {
    b.Barrier();
    return row;
  });
  EXPECT_THAT(Refusal(barrier), HasSubstr("not all invocations that meet here"));
}

TEST(VerifyTest, RefusesElementsOfWhatIsNoMatrix) {
  Kernel k = ByElements([](Builder&, Val row, Val) { return row; });
  const Inst& elements = Find(k, Code::kForElements);
  k.operands[elements.args] = Find(k, Code::kBuiltin).result;
  EXPECT_THAT(Refusal(k), HasSubstr("takes matrices"));
  k = ByElements([](Builder&, Val row, Val) { return row; });
  k.values[k.blocks[Find(k, Code::kForElements).block].arguments[0]].type = kU32;
  EXPECT_FALSE(Verify(k, RichCaps()).ok());
}

// Doubles the elements of two matrices of sums, reduces their rows and makes an A of them.
Kernel ComputedMatrices(uint16_t columns = 8) {
  return MakeKernel("computed", [&](Builder& b, Val) {
    const Type sums = Type::Matrix(DType::kF32, MatrixUse::kAccumulator, 16, 8);
    const Val ones = b.Literal(sums, 1);
    const Vals made = b.ForElements({ones, b.Literal(sums, 2)}, 1, [&](Val, Val, const Vals& x) {
      return Vals{x[0] * 2.0, x[0] + x[1]};
    });
    b.MatrixConvert(Type::Matrix(DType::kF16, MatrixUse::kA, 16, columns),
                    {b.MatrixReduce(ReduceKind::kMax, made[1])});
  });
}

TEST(VerifyTest, AcceptsComputedMatricesWhereTheDeviceHasThem) {
  const Kernel k = ComputedMatrices();
  Caps caps = testing::GroupMatrixCaps();
  EXPECT_TRUE(Verify(k, caps).ok()) << Refusal(k, caps);
  EXPECT_THAT(ToText(k), HasSubstr(": f32<16, 8> = for elements %"));
  EXPECT_THAT(ToText(k), HasSubstr("matrix_reduce.max %"));
  caps.matrix_values = false;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("needs computed cooperative matrices"));
}

TEST(VerifyTest, RefusesComputedMatricesOfOtherSizes) {
  const Caps caps = testing::GroupMatrixCaps();
  EXPECT_THAT(Refusal(ComputedMatrices(16), caps), HasSubstr("that its columns are"));
  Kernel k = ComputedMatrices();
  k.values[Find(k, Code::kMatrixReduce).result].type.use = MatrixUse::kB;
  EXPECT_FALSE(Verify(k, caps).ok());
  k = ComputedMatrices();
  k.values[Find(k, Code::kForElements).result].type.rows = 8;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("elements of the results"));
  k = ComputedMatrices();
  k.values[k.operands[Find(k, Code::kForElements).args + 1]].type.cols = 16;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("matrices of one size"));
}

// Copies `count` halves to shared memory, and multiplies them by themselves in a workgroup of 128.
Kernel WorkgroupProduct(int count, bool swizzled, uint16_t columns = 64) {
  Kernel k{.name = "workgroup", .workgroup = {128, 1, 1}, .subgroup = 32};
  Builder b(k);
  const Type halves = Type{DType::kF16}.Lanes(4);
  const uint16_t in = b.AddView(Reads("x", halves, 0)), out = b.AddView(Writes("y", kF32, 1));
  const uint16_t tile = b.AddView({.name = "tile",
                                   .space = Space::kShared,
                                   .elem = halves,
                                   .extent = 64 * 64 / 4,
                                   .writes = true,
                                   .swizzled = swizzled});
  b.CopyAsync({tile, b.Builtin(BuiltinKind::kLocalX) * 2}, {in, b.Int(0)}, count,
              b.Literal(kBool, 1));
  b.CommitCopies();
  b.WaitCopies(0);
  b.Barrier();
  const auto load = [&](MatrixUse use, uint16_t rows, uint16_t cols) {
    return b.MatrixLoad(tile, Type::Matrix(DType::kF16, use, rows, cols, Scope::kWorkgroup),
                        b.Int(0), b.Int(0), use == MatrixUse::kB);
  };
  const Val zeros = b.Literal(
      Type::Matrix(DType::kF32, MatrixUse::kAccumulator, 64, columns, Scope::kWorkgroup), 0);
  const Val sum =
      b.MatrixMulAdd(load(MatrixUse::kA, 64, 64), load(MatrixUse::kB, 64, columns), zeros);
  b.ForElements(b.MatrixWait(sum, 0), 4, [&](Val row, Val column, Val v) {
    b.Store(out, row * 64 + column, b.Extract(v, 0));
  });
  b.Finish();
  return k;
}

TEST(VerifyTest, AcceptsMatricesOfAWorkgroupWhereTheDeviceHasThem) {
  const Kernel k = WorkgroupProduct(2, true);
  Caps caps = testing::GroupMatrixCaps();
  EXPECT_TRUE(Verify(k, caps).ok()) << Refusal(k, caps);
  EXPECT_THAT(ToText(k), HasSubstr("copy_async tile["));
  EXPECT_THAT(ToText(k), HasSubstr("f32<64, 64, workgroup>"));
  caps.workgroup_elements_together = 1;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("4 elements of a matrix at once"));
  caps.workgroup_matrices.clear();
  EXPECT_THAT(Refusal(k, caps), HasSubstr("no matrices"));
  caps = testing::GroupMatrixCaps();
  caps.async_copies = false;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("needs asynchronous copies"));
}

TEST(VerifyTest, RefusesWhatMatrixUnitsDoNotReadAndCopiesThatAreNo16Bytes) {
  const Caps caps = testing::GroupMatrixCaps();
  EXPECT_THAT(Refusal(WorkgroupProduct(1, true), caps), HasSubstr("copies 16 bytes"));
  EXPECT_THAT(Refusal(WorkgroupProduct(2, false), caps), HasSubstr("from swizzled memory"));
  EXPECT_THAT(Refusal(WorkgroupProduct(2, true, 24), caps), HasSubstr("no matrices"));
}

TEST(VerifyTest, RefusesArithmeticOnMatrices) {
  Kernel k = MatrixProduct([](Builder& b) { return b.Int(0); });
  Find(k, Code::kMatrixMulAdd).code = Code::kFma;
  EXPECT_THAT(Refusal(k), HasSubstr("does not take matrices"));
}

TEST(VerifyTest, RefusesBarriersThatNotAllReach) {
  const Kernel k =
      MakeKernel("barrier", [](Builder& b, Val i) { b.If(i < 7, [&] { b.Barrier(); }); });
  EXPECT_THAT(Refusal(k), HasSubstr("barrier: not all invocations"));
}

TEST(VerifyTest, RefusesBarriersInLoopsOfUnlikeLength) {
  const Kernel k = MakeKernel("barrier", [](Builder& b, Val i) {
    b.For({b.Int(0), i, b.Int(1)}, {}, [&](Val, const Vals&) {
      b.Barrier();
      return Vals{};
    });
  });
  EXPECT_THAT(Refusal(k), HasSubstr("not all invocations"));
}

TEST(VerifyTest, AcceptsBarriersWhereTheWorkgroupAgrees) {
  const Kernel k = MakeKernel("barrier", [](Builder& b, Val) {
    b.If(b.Builtin(BuiltinKind::kWorkgroupX) < 2, [&] { b.Barrier(); });
  });
  EXPECT_TRUE(Verify(k, RichCaps()).ok()) << Refusal(k);
}

TEST(VerifyTest, RefusesSubgroupOperationsUnderUnlikeConditions) {
  const Kernel k = MapKernel("subgroup", kF32, kF32,
                             [](Val x) { return x.b->SubgroupReduce(ReduceKind::kSum, x); });
  EXPECT_THAT(Refusal(k), HasSubstr("subgroup_reduce.sum"));
}

TEST(VerifyTest, RefusesSubgroupOperationsBehindLoopsWhereSubgroupsMayStayApart) {
  EXPECT_TRUE(Verify(SumBehindLoop(), RichCaps()).ok()) << Refusal(SumBehindLoop());
  Caps apart = RichCaps();
  apart.subgroup_reconvergence = false;
  EXPECT_THAT(Refusal(SumBehindLoop(), apart), HasSubstr("whole behind loops"));
  // The same loop at each trip of another, behind the operation.
  const Kernel again = MakeKernel("again", [](Builder& b, Val i) {
    b.For({b.Int(0), b.Int(4), b.Int(1)}, {i}, [&](Val, const Vals& v) {
      const Val all = b.SubgroupReduce(ReduceKind::kSum, v[0]);
      return b.For({i, b.Int(100), b.Int(9)}, {all},
                   [](Val n, const Vals& inner) { return Vals{inner[0] + n}; });
    });
  });
  EXPECT_THAT(Refusal(again, apart), HasSubstr("whole behind loops"));
}

TEST(VerifyTest, RefusesReductionsThatAreNone) {
  for (const Code code : {Code::kSubgroupReduce, Code::kSubgroupScan}) {
    Kernel k = MakeKernel("subgroup", [](Builder& b, Val i) {
      b.SubgroupReduce(ReduceKind::kSum, i);
      b.SubgroupScan(ReduceKind::kSum, i);
    });
    EXPECT_TRUE(Verify(k, RichCaps()).ok()) << Refusal(k);
    Find(k, code).aux = 4;
    EXPECT_THAT(Refusal(k), HasSubstr("there is no such reduction"));
  }
}

TEST(VerifyTest, RefusesWhatIsBeyondTheLimits) {
  Caps caps;
  Kernel k = TreeSum();
  k.workgroup = {16, 16, 1};
  EXPECT_THAT(Refusal(k, caps), HasSubstr("256 invocations, the device has 128"));
  k = TreeSum();
  k.views[2].extent = 4097;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("bytes of shared memory, the device has 16384"));
  k = TreeSum();
  k.scalars.assign(33, ir::Dim(1));
  EXPECT_THAT(Refusal(k, caps), HasSubstr("132 bytes of scalars, the device has 128"));
  k = TreeSum();
  k.views[1].operand = 4;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("5 operands, the device has 4"));
  k = TreeSum();
  k.subgroup = 16;
  EXPECT_THAT(Refusal(k, caps), HasSubstr("no subgroups of 16"));
}

TEST(VerifyTest, RefusesFeaturesTheDeviceLacks) {
  const auto with = [](Type t) { return MapKernel("m", t, t, [](Val x) { return x + x; }); };
  EXPECT_THAT(Refusal(with({DType::kF64}), {}), HasSubstr("needs f64"));
  EXPECT_THAT(Refusal(with({DType::kI64}), {}), "OK");
  const Type i64{DType::kI64};
  const Kernel reduce = MakeKernel("m", [&](Builder& b, Val i) {
    b.Store(b.AddView(Writes("y", i64, 0)), i,
            b.SubgroupReduce(ReduceKind::kSum, convert(i, DType::kI64)));
  });
  Caps subgroups = RichCaps();
  subgroups.i64 = false;
  EXPECT_THAT(Refusal(reduce, subgroups), HasSubstr("needs 64-bit integers"));
  EXPECT_THAT(Refusal(with({DType::kF16}), {}), HasSubstr("needs f16 arithmetic"));
  const Type u8{DType::kU8};
  const Kernel copy = MapKernel("m", u8, u8, [](Val x) { return x; });
  EXPECT_THAT(Refusal(copy, {}), HasSubstr("needs 8-bit storage"));
}

}  // namespace
}  // namespace forge::codegen
