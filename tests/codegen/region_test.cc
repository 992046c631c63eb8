// SPDX-License-Identifier: Apache-2.0
// Fused regions: what they compute under each schedule, which one is chosen, and what they refuse.
#include "tests/codegen/region_test.h"

#include <numeric>

#include "codegen/schedules/matmul/gemm.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/attention_gradient.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"

namespace forge::codegen {
namespace {

TEST_P(RegionTest, RowsTimesAMatrixOfContiguousRows) {
  Value a = Argument({2, 3, 70}), b = Argument({2, 70, 132}), c = Argument({132});
  Return(f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"matmul_columns", "matmul_simple"}));
  EXPECT_EQ(Chosen(), "matmul_columns");
}

TEST_P(RegionTest, RowsTimesAMatrixOfContiguousColumns) {
  Value a = Argument({2, 72}), b = Argument({67, 72}), c = Argument({67});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{.transpose_b = true}, {a, b}), c})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"matmul_dots", "matmul_simple"}));
  EXPECT_EQ(Chosen(), "matmul_dots");
}

TEST_P(RegionTest, ManyColumnsReducedInStrips) {
  Value x = Argument({70, 1024});
  Return(f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {0}}, {x}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "reduce_outputs");
}

TEST_P(RegionTest, FewLongColumnsAreReducedInParts) {
  Value x = Argument({300, 36});
  Return(f_(ir::Relu{}, {f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {0}}, {x})}));
  for (const int outputs : {1, 4})
    ExpectRightBy(fmt::format("reduce_outputs(outputs={}, parts=16)", outputs));
  f_ = ir::Function("region");
  Return(f_(ir::Reduce{.axes = {0}}, {Argument({100000, 64})}));
  EXPECT_EQ(Chosen(), "reduce_outputs");
  EXPECT_EQ(Launches(), caps_.runs_on_cpu ? 1 : 2);
}

TEST_P(RegionTest, FewLongRowsOfASoftmaxAreSplit) {
  Value x = Argument({2, 2500}), s = Argument({2500}), z = Argument({2, 1});
  Return(f_(ir::Mul{}, {f_(ir::Softmax{}, {f_(ir::Mul{}, {x, s})}), z}));
  EXPECT_NE(Chosen(), "softmax_split");
  const auto region = Region::Of(f_, caps_);
  if (caps_.max_operands > 4)
    ExpectRightBy("softmax_split(parts=16)");
  else
    EXPECT_THAT(Message(ParseChoice(*region, "softmax_split(parts=16)").status()),
                HasSubstr("no room for scratch"));
  f_ = ir::Function("region");
  const Value place = f_(ir::Iota{.dtype = DType::kI32, .count = 2100}, {});  // parts differ
  const Value column =
      f_(ir::Reshape{.shape = {2100, 1}}, {f_(ir::Cast{.to = DType::kF32}, {place})});
  Return(f_(ir::Softmax{.axis = 0}, {f_(ir::Add{}, {Argument({2100, 3}), column * 0.002})}));
  ExpectRightBy("softmax_split(parts=16)");
  f_ = ir::Function("region");
  Return(f_(ir::Softmax{}, {Argument({1, 1 << 22})}));
  EXPECT_EQ(Chosen() == "softmax_split", !caps_.runs_on_cpu);
  caps_.cores = 2;
  EXPECT_EQ(Chosen(), "softmax_split");
}

TEST_P(RegionTest, ShortRowsStayInRegisters) {
  Value x = Argument({5, 24}), s = Argument({24});
  Return(f_(ir::Softmax{}, {f_(ir::Mul{}, {x, s})}));
  ExpectRight();
}

TEST_P(RegionTest, ColumnsOfASoftmaxSideBySide) {
  Value x = Argument({3, 6, 16});
  Return(f_(ir::Softmax{.axis = 1}, {x}));
  ExpectRight();
}

// Operands of f16, which some devices multiply as matrices.
TEST_P(RegionTest, ProductOfTransposedAndSlicedOperands) {
  Value a = Argument({8, 5}), b = Argument({20, 12});
  Value at = f_(ir::Transpose{.permutation = {1, 0}}, {a});
  Value bs = f_(ir::Slice{.begin = {2}, .end = {10}, .axes = {0}}, {b});
  Return(f_(ir::MatMul{}, {at, bs}));
  ExpectRight();
}

TEST_P(RegionTest, ResultReshapedAndTransposed) {
  Value a = Argument({6, 8}), b = Argument({8, 20}), c = Argument({5, 1});
  Value y = f_(ir::Reshape{.shape = {2, 3, 4, 5}}, {f_(ir::MatMul{}, {a, b})});
  Value t = f_(ir::Transpose{.permutation = {0, 2, 3, 1}}, {y});
  Return(f_(ir::Add{}, {t, c}));
  ExpectRight();
}

TEST_P(RegionTest, ResultSplitAtWholeVectors) {
  Value a = Argument({6, 8}), b = Argument({8, 20});
  Value y = f_(ir::Relu{}, {f_(ir::MatMul{}, {a, b})});
  Return(f_(ir::Slice{.begin = {0}, .end = {8}, .axes = {1}}, {y}));
  Value rest = f_(ir::Slice{.begin = {8}, .end = {20}, .axes = {1}}, {y});
  Return(f_(ir::Transpose{.permutation = {1, 0}}, {rest}));
  ExpectRight();
}

TEST_P(RegionTest, PartsOfAResultBetweenVectorsAndOfOneRow) {
  Value a = Argument({6, 8}), b = Argument({8, 20});
  Value y = f_(ir::MatMul{}, {a, b});
  Value part = f_(ir::Slice{.begin = {3}, .end = {14}, .axes = {1}}, {y});
  Return(f_(ir::Reshape{.shape = {3, 2, 11}}, {part}));
  Value row = f_(ir::Slice{.begin = {4}, .end = {5}, .axes = {0}}, {y});
  Return(f_(ir::Reshape{.shape = {20}}, {row}));
  ExpectRight();
}

TEST_P(RegionTest, ConvolutionSplitByChannels) {
  Value x = Argument({1, 4, 9, 9}), w = Argument({8, 4, 3, 3});
  Value y = f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w});
  Return(f_(ir::Slice{.begin = {0}, .end = {3}, .axes = {1}}, {y}));
  Return(f_(ir::Slice{.begin = {3}, .end = {8}, .axes = {1}}, {y}));
  ExpectRight();
}

TEST_P(RegionTest, MeansOfASignal) {
  const ir::Pool pool{
      .kind = ir::PoolKind::kAverage, .kernel = {3}, .strides = {2}, .padding = {1, 2}};
  Return(f_(pool, {Argument({2, 3, 17})}));
  ExpectRight();
}

TEST_P(RegionTest, MaximaOfAVolume) {
  const ir::Pool pool{.kernel = {2, 3, 2}, .strides = {1, 2, 1}, .padding = {1, 1, 0, 0, 2, 1}};
  Return(f_(ir::Relu{}, {f_(pool, {Argument({1, 2, 3, 4, 5})})}));
  ExpectRight();
}

TEST_P(RegionTest, SeveralResults) {
  Value x = Argument({1, 2, 9, 9});
  Value y = f_(ir::Pool{.kernel = {3, 3}, .strides = {2, 2}}, {x});
  Return(y);
  Return(f_(ir::Relu{}, {f_(ir::Reshape{.shape = {2, 16}}, {y})}));
  ExpectRight();
}

TEST_P(RegionTest, EachResultOfANormHasAnEpilogue) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  for (const Dims& shape : {Dims{5, 40}, Dims{3, 512}, Dims{4, 4, 33}}) {
    f_ = ir::Function("region");
    const Values norm = f_.Add(ir::LayerNorm{.statistics = true}, std::array{Argument(shape)});
    const auto rows = std::accumulate(shape.begin(), shape.end() - 1, ir::Dim(1),
                                      [](const ir::Dim& a, const ir::Dim& b) { return a * b; });
    Return(f_(ir::Relu{}, {norm[0]}));
    Return(f_(ir::Reshape{.shape = {rows}}, {norm[1] * 0.5}));
    Return(1.0 / (norm[2] * norm[2]));
    ExpectRight();
    EXPECT_EQ(Launches(), 1);
  }
}

TEST_P(RegionTest, RefusesWhatMeetsTwoResultsOfTheAnchor) {
  const Values norm = f_.Add(ir::LayerNorm{.statistics = true}, std::array{Argument({5, 40})});
  Return(norm[1] * norm[2]);
  EXPECT_THAT(Refusal().ToString(), HasSubstr("two places"));
}

TEST_P(RegionTest, WidenedIntegersAreComparedWithLiterals) {
  for (const double literal : {-1.0, 0.0, 3.0, 1e12, -1e12}) {
    f_ = ir::Function("region");
    const Value wide = f_(ir::Cast{.to = DType::kI64}, {Argument({37}, DType::kI32)});
    Return(wide < literal);
    Return(wide > literal);
    ExpectRight();
  }
}

TEST_P(RegionTest, ReductionOfAProduct) {
  Value x = Argument({3, 40}), y = Argument({40});
  Value sum = f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {1}, .keep_dims = false},
                 {f_(ir::Mul{}, {x, y})});
  Return(f_(ir::Sqrt{}, {f_(ir::Mul{}, {sum, sum})}));
  ExpectRight();
}

TEST_P(RegionTest, LongRowsInPartsAndWhole) {
  Value x = Argument({2, 1 << 18});
  Value sum = f_(ir::Reduce{.kind = ir::ReduceKind::kMax, .axes = {1}}, {x});
  Return(f_(ir::Relu{}, {sum}));
  ExpectRight();
}

TEST_P(RegionTest, SoftmaxOfScaledScores) {
  Value x = Argument({3, 300}), scale = Argument({});
  Return(f_(ir::Softmax{}, {f_(ir::Mul{}, {x, scale})}));
  ExpectRight();
}

// Heads split off by a transpose that the loads do, and joined again by one that the stores do.
TEST_P(RegionTest, AttentionOfSplitHeads) {
  const auto heads = [&](int64_t rows) {
    Value x = Argument({2, rows, 24});
    Value split = f_(ir::Reshape{.shape = {2, rows, 3, 8}}, {x});
    return f_(ir::Transpose{.permutation = {0, 2, 1, 3}}, {split});
  };
  Value y = f_(ir::Attention{}, {heads(21), heads(70), heads(70)});
  y = f_(ir::Transpose{.permutation = {0, 2, 1, 3}}, {y});
  Return(f_(ir::Reshape{.shape = {2, 21, 24}}, {y}));
  ExpectRight();
}

// The mask is made where it is read.
TEST_P(RegionTest, AttentionUnderAPaddingMask) {
  if (caps_.max_operands < 5) return;
  Value q = Argument({2, 18, 16}), k = Argument({2, 36, 16}), v = Argument({2, 36, 20});
  Value kept = f_(ir::Cast{.to = DType::kF32}, {Argument({2, 1, 36}, DType::kBool)});
  Value mask = (kept - 1.0) * 1e9;
  Return(f_(ir::Attention{.scale = 0.25}, {q, k, v, mask}));
  ExpectRight();
}

// On every device, by queries that share keys, the last ones of which some do not see.
TEST_P(RegionTest, AttentionOfLongHeadsIsOneKernel) {
  most_choices_ = 2;
  for (const DType t : {DType::kF32, DType::kF16})
    for (const int64_t head : {32, 128, 200, 256}) {
      SCOPED_TRACE(head);
      f_ = ir::Function("region");
      Value q = Argument({2, 9, head}, t), k = Argument({1, 19, head}, t);
      Value v = Argument({1, 19, head}, t);
      Return(f_(ir::Attention{.scale = 0.01, .causal = ir::Causal::kBottomRight}, {q, k, v}));
      ExpectRight();
      EXPECT_THAT(Chosen(), HasSubstr("attention"));
      EXPECT_EQ(Launches(), 1);
    }
}

TEST_P(RegionTest, AttentionInSlices) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "barriers are dear on this device";
  Value q = Argument({18, 76}), k = Argument({50, 76}), v = Argument({50, 70});
  if (caps_.max_operands > 4)
    Return(f_(ir::Attention{.softcap = 2}, {q, k, v, Argument({18, 50}, DType::kBool)}));
  else
    Return(f_(ir::Attention{.softcap = 2}, {q, k, v}));
  for (const int slice : {16, 32, 64})
    ExpectRightBy(fmt::format("attention_shared(rows=16, keys=16, slice={})", slice));
}

// A row's keys go to several workgroups: some of these see none of them, or masked ones alone.
TEST_P(RegionTest, AttentionOfFewRowsInParts) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "barriers are dear on this device";
  Value q = Argument({2, 3, 20}), k = Argument({1, 270, 20}), v = Argument({2, 270, 18});
  Return(f_(ir::Attention{.causal = ir::Causal::kBottomRight, .window_left = 60}, {q, k, v}));
  for (const int parts : {4, 16})
    ExpectRightBy(fmt::format("attention_shared(rows=8, keys=16, parts={})", parts).c_str());
  ExpectRightBy("attention_shared(rows=8, keys=16, slice=16, parts=4)");
}

TEST_P(RegionTest, AttentionOfOneRowIsSplitByItself) {
  Value q = Argument({8, 1, 64}, DType::kF16), k = Argument({2, 1, 2100, 64}, DType::kF16);
  Value v = Argument({2, 1, 2100, 64}, DType::kF16);
  most_choices_ = 1;
  Return(f_(ir::Attention{.scale = 0.01}, {f_(ir::Reshape{.shape = {2, 4, 1, 64}}, {q}), k, v}));
  ExpectRight();
  EXPECT_EQ(Launches(), caps_.runs_on_cpu ? 1 : 2);
}

// Queries of three matrices share each matrix of keys.
TEST_P(RegionTest, AttentionGradientsOfRowsAndOfKeys) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "barriers are dear on this device";
  if (caps_.max_operands < 10) GTEST_SKIP() << "ten operands and results are too many";
  Value q = Argument({3, 2, 18, 20}), k = Argument({2, 35, 20}), v = Argument({2, 35, 24});
  Value log_sum = Argument({3, 2, 18, 1}), dy = Argument({3, 2, 18, 24});
  Value delta = Argument({3, 2, 18, 1}), mask = Argument({35}, DType::kBool);
  const ir::AttentionGradient op{
      .softcap = 2, .causal = ir::Causal::kBottomRight, .window_left = 20};
  for (const Value& d : f_.Add(op, Values{q, k, v, log_sum, dy, delta, mask})) Return(d);
  ExpectRight();
  EXPECT_EQ(Chosen(), "attention_gradient");
  EXPECT_EQ(Launches(), 2);
}

TEST_P(RegionTest, TurnedInBlocks) {
  Value x = Argument({2, 64, 32}), y = Argument({32, 64}), row = Argument({32, 1});
  Value turned = f_(ir::Transpose{.permutation = {0, 2, 1}}, {x});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::Mul{}, {turned, row}), y})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"transpose", "elementwise"}));
  EXPECT_EQ(Chosen(), "transpose");
}

TEST_P(RegionTest, HeadsTurnedInOrderAreNotTurned) {
  Value x = Argument({2, 16, 4, 8});
  Return(f_(ir::Transpose{.permutation = {0, 2, 1, 3}}, {x}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "elementwise");
}

TEST_P(RegionTest, ElementsFromEverywhere) {
  Value a = Argument({4, 6}), b = Argument({3, 6}), c = Argument({7, 1});
  Value joined = f_(ir::Concat{.axis = 0}, {a, b});
  Value flipped = f_(ir::Slice{.begin = {-1}, .end = {-100}, .axes = {1}, .steps = {-1}}, {joined});
  Return(f_(ir::Mul{}, {flipped, c}));
  ExpectRight();
}

TEST_P(RegionTest, JoinedInBlocksOfVectors) {
  Value a = Argument({3, 8}), b = Argument({3, 4});
  Return(f_(ir::Relu{}, {f_(ir::Concat{.axis = 1}, {a, b})}));
  ExpectRight();
}

TEST_P(RegionTest, NarrowTypesBetweenWideOnes) {
  Value x = Argument({37});
  Value narrow = f_(ir::Cast{.to = DType::kF16}, {x});
  Value small = f_(ir::Cast{.to = DType::kI8}, {f_(ir::Mul{}, {narrow, narrow})});
  Return(f_(ir::Cast{.to = DType::kF32}, {f_(ir::Mul{}, {small, small})}));
  ExpectRight();
}

// Drivers of CPUs load each element by itself, and GPUs without narrow storage have only words.
TEST_P(RegionTest, VectorsOfNarrowElementsAreLoadedInWords) {
  const Value x = Argument({8, 64}, DType::kF16), mask = Argument({8, 64}, DType::kBool);
  Return(f_(ir::Select{}, {mask, x, f_(ir::Neg{}, {x})}));
  ExpectRight();
  const Program program = Generated();
  const Kernel& k = program.launches.at(0).kernel;
  EXPECT_EQ(std::all_of(k.views.begin(), k.views.end(),
                        [](const View& v) { return v.elem.elem == DType::kU32; }),
            caps_.runs_on_cpu || !caps_.storage16)
      << ToText(k);
}

TEST_P(RegionTest, MoreWorkgroupsThanOneAxisHolds) {
  caps_.max_grid_x = caps_.max_grid_y = 3;
  Value x = Argument({5, 7, 31}), y = Argument({7, 1});
  Return(f_(ir::Add{}, {x, y}));
  ExpectRight();
  for (const int64_t n : {128, 256, 512, 1024}) {  // of which some are whole workgroups
    f_ = ir::Function("region");
    x = Argument({5, n});
    Return(f_(ir::Add{}, {x, x}));
    ExpectRight();
  }
}

TEST_P(RegionTest, NormBeforeAProduct) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  Value x = Argument({40, 64}), gamma = Argument({64}), beta = Argument({64});
  Value w = Argument({64, 48}), bias = Argument({48});
  Value norm = f_(ir::LayerNorm{}, {x, gamma, beta});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {norm, w}), bias})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("matmul_simple")}));
  const Program program = Generated();
  EXPECT_THAT(program.launches.at(0).kernel.name, HasSubstr("layer_norm_statistics"));
  EXPECT_EQ(program.scratch_bytes.at(0), 40 * 2 * 4);
}

// Of a matrix on its side, lanes lie along rows; parts of k are summed with the norm's scratch
// beside their own.
TEST_P(RegionTest, RootMeanSquareNormBeforeAProduct) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  const ir::LayerNorm norm{.epsilon = 1e-3, .subtract_mean = false};
  for (const bool on_its_side : {false, true}) {
    f_ = ir::Function("region");
    Value rows = f_(norm, {Argument(on_its_side ? Dims{2, 48, 20} : Dims{2, 18, 265})});
    Return(
        f_(ir::MatMul{.transpose_a = on_its_side}, {rows, Argument({on_its_side ? 48 : 265, 36})}));
    ExpectRight();
  }
}

TEST_P(RegionTest, RefusesANormWithoutRoomForItsScratch) {
  caps_.max_operands = 3;
  Value norm = f_(ir::LayerNorm{}, {Argument({40, 64})});
  Return(f_(ir::MatMul{}, {norm, Argument({64, 48})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("no room for scratch"));
}

TEST_P(RegionTest, NormsPayWhereTilesAreFew) {
  const auto why = [&](Dims x, int64_t columns, ir::LayerNorm norm = {}) {
    f_ = ir::Function("region");
    Value rows = f_(norm, {Argument(x)});
    Return(f_(ir::MatMul{}, {rows, Argument({x.back(), columns})}));
    const auto region = Region::Of(f_, caps_);
    return NormPays(*region).text();
  };
  EXPECT_EQ(why({64, 512}, 32), "");
  EXPECT_THAT(why({4096, 512}, 512), HasSubstr("too many tiles"));
  EXPECT_EQ(why({4096, 512}, 256),
            caps_.runs_on_cpu ? "too many tiles of columns would normalise it again" : "");
  EXPECT_THAT(why({64, 512}, 256), HasSubstr(caps_.runs_on_cpu ? "too many tiles" : "caches"));
  EXPECT_THAT(why({8, 512, 512}, 512, {.axis = 1}), HasSubstr("not those of the norm"));
  EXPECT_EQ(why({1 << 23, 3}, 2), "");
  EXPECT_THAT(why({1 << 23 | 1, 3}, 2), HasSubstr("too much scratch"));
  // The matrix of 8 MiB is read again from a cache as large as that, less one element.
  if (caps_.runs_on_cpu) return;
  caps_.cache_bytes = 8 << 20;
  EXPECT_EQ(why({4096, 512}, 256), "");
  caps_.cache_bytes = 16 << 20;
  EXPECT_THAT(why({4096, 512}, 256), HasSubstr("caches"));
  caps_.cache_bytes = 1 << 20;
  caps_.flops_per_byte = 64;
  EXPECT_EQ(why({4096, 512}, 512), "");
  caps_.flops_per_byte = 16;
  EXPECT_EQ(why({4096, 512}, 128), "");
  EXPECT_THAT(why({4096, 512}, 256), HasSubstr("too many tiles"));
}

TEST_P(RegionTest, RefusesTwoAnchors) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Return(f_(ir::Softmax{}, {f_(ir::MatMul{}, {a, b})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("matmul and softmax are two anchors"));
}

TEST_P(RegionTest, RefusesToRepeatTheAnchor) {
  Value x = Argument({4, 5});
  Value mean = f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {1}}, {x});
  Return(f_(ir::Sub{}, {x, mean}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("repeats the anchor's elements"));
}

TEST_P(RegionTest, RefusesTheAnchorAtTwoPlaces) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Value y = f_(ir::MatMul{}, {a, b});
  Return(f_(ir::Add{}, {y, f_(ir::Transpose{.permutation = {1, 0}}, {y})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("two places"));
}

TEST_P(RegionTest, RefusesElementWiseOpsOfAPart) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Value part = f_(ir::Slice{.begin = {1}, .end = {3}, .axes = {0}}, {f_(ir::MatMul{}, {a, b})});
  Return(f_(ir::Relu{}, {part}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("relu follows a part"));
}

TEST_P(RegionTest, RefusesToPadTheResult) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Return(f_(ir::Pad{.before = {1, 0}, .after = {0, 0}}, {f_(ir::MatMul{}, {a, b})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("pad after the anchor"));
}

TEST_P(RegionTest, RefusesMoreOperandsThanCanBeBound) {
  caps_.max_operands = 4;
  Value sum = Argument({8});
  for (int i = 0; i < 3; ++i) sum = f_(ir::Add{}, {sum, Argument({8})});
  Return(sum);
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("one kernel binds 4"));
}

// Of a convolution, a product and a pool: however many rows a step value says there are.
TEST_P(RegionTest, UnboundedRowsStayWithinTheGrid) {
  constexpr int64_t kRows = 100'000'000;
  const auto n = std::make_shared<const ir::Symbol>(
      ir::Symbol{.name = "n", .min = 1, .divisor = 1, .when = ir::When::kStep});
  caps_.max_grid_x = caps_.max_grid_y = caps_.max_grid_z = 65535;
  const ir::Dim rows(n);
  const std::vector<std::pair<ir::AnyOp, std::vector<Dims>>> ops = {
      {ir::Conv{.padding = {1, 1, 1, 1}}, {{1, 4, rows, 8}, {8, 4, 3, 3}}},
      {ir::Conv{}, {{rows, 16, 1, 1}, {32, 16, 1, 1}}},
      {ir::Conv{.groups = 8}, {{rows, 8, 4, 4}, {8, 1, 3, 3}}},
      {ir::MatMul{}, {{rows, 32}, {32, 16}}},
      {ir::Pool{.kernel = {2, 2}, .strides = {2, 2}}, {{rows, 1, 2, 8}}}};
  for (const auto& [op, shapes] : ops) {
    SCOPED_TRACE(op.ToText());
    ir::Function f("region");
    ir::Values in;
    for (const Dims& shape : shapes)
      in.push_back(f.Argument(fmt::format("x{}", in.size()), ir::Type::Tensor(DType::kF32, shape)));
    f.Return("y", f.Add(op, in)[0]);
    const auto region = Region::Of(f, caps_);
    ASSERT_TRUE(region.ok()) << region.status();
    for (const Choice& choice : ChoicesFor(*region, most_choices_))
      for (const Launch& launch : Generate(*region, choice).launches)
        for (const ir::Dim& groups : launch.kernel.grid) {
          const auto count = groups.Evaluate({{n, kRows}});
          ASSERT_TRUE(count.ok()) << count.status();
          EXPECT_LE(*count, 65535) << choice.ToText() << ": " << groups.ToText();
        }
  }
}

TEST_P(RegionTest, RefusesMoreElementsThanItNumbers) {
  Return(f_(ir::Relu{}, {Argument({1 << 16, 1 << 15})}));
  EXPECT_THAT(std::string(Refusal().message()),
              HasSubstr("f32[65536, 32768] has 2147483648 elements, kernels number at most"));
}

INSTANTIATE_TEST_SUITE_P(Devices, RegionTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
