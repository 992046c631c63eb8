# SPDX-License-Identifier: Apache-2.0
"""How the differential test uses each operator: random operands and attributes for the opset at hand.

A generator takes a Graph and gives (inputs, attributes) or (inputs, attributes, number of outputs); an input is a
Value, or None where it is absent. What onnxruntime refuses is drawn again.
"""

import numpy as np

from operators.attention import (
    attention, causal_conv_with_state, linear_attention, rotary_embedding, tensor_scatter,
)
from operators.common import ANYTHING, FLOATS, NUMBERS, SIGNED, UNSIGNED
from operators.control import branch, loop, nonzero, scan, unique
from operators.elementwise import (
    binary, bit_cast, bit_shift, cast, cast_like, clip, dequantize, divide, dropout, gelu, is_inf, is_nan, modulo,
    number, power, prelu, swiglu, swish, unary, variadic, where,
)
from operators.host import optional, select_boxes, sequence, strings, tf_idf
from operators.learned import LEARNED
from operators.microsoft import MICROSOFT, simplified_norm
from operators.movement import (
    center_crop_pad, compress, concat, constant, constant_of_shape, depth_to_space, expand, eye_like, flatten, gather,
    gather_elements, gather_nd, one_hot, pad, range_, reshape, reverse_sequence, scatter_elements, scatter_nd, shape_of,
    slice_, space_to_depth, split, squeeze, tile, transpose, trilu, unsqueeze,
)
from operators.products import (
    arg_reduce, class_loss, cumulate, determinant, einsum, gemm, global_lp_pool, lp_normalization, lrn, matmul,
    matmul_integer, mean_variance_normalization, reduction, softmax, top_k,
)
from operators.random import bernoulli, multinomial, random_like, random_of_shape
from operators.quantised import conv_integer, dynamic_quantize, qlinear_conv, qlinear_matmul, quantize
from operators.recurrent import recurrent
from operators.signal import dft, mel_weight_matrix, stft, window
from operators.windows import (
    affine_grid, batch_norm, col2im, conv, conv_transpose, deform_conv, global_pool, grid_sample, group_norm,
    instance_norm, lp_pool, max_roi_pool, max_unpool, norm, pool, resize, roi_align, upsample,
)

# Whose result changes by a step where the first operand changes by a little.
JUMPS = frozenset("""ArgMax ArgMin Cast CastLike Ceil DynamicQuantizeLinear Floor Hardmax IsInf IsNaN Mod
    NonZero OneHot QLinearConv QLinearMatMul QuantizeLinear Round Shrink Sign ThresholdedRelu TopK Unique""".split())

# Whose results are rounded; the others move, select or compare, or are made of integers.
ROUNDS = frozenset("""Acos Acosh Add AffineGrid Asin Asinh Atan Atanh Attention AveragePool
    BatchNormalization BlackmanWindow CausalConvWithState Celu Col2Im Conv ConvTranspose Cos Cosh CumProd
    CumSum DFT DeformConv DequantizeLinear Det Div DynamicQuantizeLinear Einsum Elu Erf Exp GRU Gelu Gemm
    GlobalAveragePool GlobalLpPool GridSample GroupNormalization HammingWindow HannWindow HardSigmoid
    HardSwish InstanceNormalization LRN LSTM LayerNormalization LeakyRelu LinearAttention Log LogSoftmax
    Loop LpNormalization LpPool MatMul Mean MeanVarianceNormalization MelWeightMatrix Mish Mul
    NegativeLogLikelihoodLoss PRelu Pow QuantizeLinear RMSNormalization RNN Range Reciprocal ReduceL1
    ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare Resize RoiAlign
    RotaryEmbedding STFT Scan ScatterElements ScatterND Selu Shrink Sigmoid SimplifiedLayerNormalization Sin Sinh
    Softmax SoftmaxCrossEntropyLoss Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh Upsample""".split())
COMPARED = (np.float32, np.float64, np.int32, np.int64, np.float16)
GENERATORS = {
    "Abs": unary(NUMBERS),
    "Acos": unary((np.float32,), -0.9, 0.9),
    "Acosh": unary((np.float32,), 1.1),
    "Add": binary(),
    "AffineGrid": affine_grid,
    "And": binary((np.bool_,)),
    "ArgMax": arg_reduce,
    "ArgMin": arg_reduce,
    "Asin": unary((np.float32,), -0.9, 0.9),
    "Asinh": unary((np.float32,)),
    "Atan": unary((np.float32,)),
    "Atanh": unary((np.float32,), -0.9, 0.9),
    "Attention": attention,
    "AveragePool": pool(True),
    "BatchNormalization": batch_norm,
    "Bernoulli": bernoulli,
    "BitCast": bit_cast,
    "BitShift": bit_shift,
    "BitwiseAnd": binary(SIGNED + UNSIGNED),
    "BitwiseNot": unary(SIGNED + UNSIGNED),
    "BitwiseOr": binary(SIGNED + UNSIGNED),
    "BitwiseXor": binary(SIGNED + UNSIGNED),
    "BlackmanWindow": window(np.float16),  # its ends in f32 and f64 are what rounding leaves of 0
    "Cast": cast,
    "CastLike": cast_like,
    "CausalConvWithState": causal_conv_with_state,
    "Ceil": unary(),
    "Celu": unary((np.float32,), alpha=number(0.5, 2)),
    "CenterCropPad": center_crop_pad,
    "Clip": clip,
    "Col2Im": col2im,
    "Compress": compress,
    "Concat": concat,
    "ConcatFromSequence": sequence("ConcatFromSequence"),
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "ConvTranspose": conv_transpose,
    "Cos": unary((np.float32, np.float64)),
    "Cosh": unary((np.float32,)),
    "CumProd": cumulate((np.float32, np.float64), 0.5, 1.5),
    "CumSum": cumulate(),
    "DeformConv": deform_conv,
    "DepthToSpace": depth_to_space,
    "DequantizeLinear": dequantize,
    "Det": determinant,
    "DFT": dft,
    "Div": divide,
    "Dropout": dropout,
    "DynamicQuantizeLinear": dynamic_quantize,
    "Einsum": einsum,
    "Elu": unary(alpha=number(0.5, 2)),
    "Equal": binary(COMPARED + (np.bool_,)),
    "Erf": unary(),
    "Exp": unary(),
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Floor": unary(),
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Gelu": gelu,
    "Gemm": gemm,
    "GlobalAveragePool": global_pool,
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_pool,
    "Greater": binary(COMPARED),
    "GreaterOrEqual": binary(COMPARED),
    "GridSample": grid_sample,
    "GroupNormalization": group_norm,
    "GRU": recurrent(3, 1, linear_before_reset=lambda g, _: int(g.rng.integers(2))),
    "HammingWindow": window(np.float32, np.float32, np.float64, np.float16),
    "HannWindow": window(np.float32, np.float32, np.float64, np.float16),
    "Hardmax": softmax,
    "HardSigmoid": unary(alpha=number(0.1, 0.5), beta=number(0.2, 0.8)),
    "HardSwish": unary(),
    "Identity": unary(ANYTHING),
    "If": branch,
    "InstanceNormalization": instance_norm,
    "IsInf": is_inf,
    "IsNaN": is_nan,
    "LayerNormalization": norm(True),
    "LeakyRelu": unary(alpha=number(0.01, 0.5)),
    "Less": binary(COMPARED),
    "LessOrEqual": binary(COMPARED),
    "LinearAttention": linear_attention,
    "Log": unary(low=0.1),
    "LogSoftmax": softmax,
    "Loop": loop,
    "LpNormalization": lp_normalization,
    "LpPool": lp_pool,
    "LRN": lrn,
    "LSTM": recurrent(4, 2),
    "MatMul": matmul,
    "MatMulInteger": matmul_integer,
    "Max": variadic(NUMBERS),
    "MaxPool": pool(False),
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
    "Mean": variadic((np.float32, np.float64)),
    "MeanVarianceNormalization": mean_variance_normalization,
    "MelWeightMatrix": mel_weight_matrix,
    "Min": variadic(NUMBERS),
    "Mish": unary(),
    "Mod": modulo,
    "Mul": binary(),
    "Multinomial": multinomial,
    "Neg": unary(FLOATS + SIGNED),
    "NegativeLogLikelihoodLoss": class_loss(True),
    "NonMaxSuppression": select_boxes,
    "NonZero": nonzero,
    "Not": unary((np.bool_,)),
    "OneHot": one_hot,
    "Optional": optional,
    "OptionalGetElement": optional,
    "OptionalHasElement": optional,
    "Or": binary((np.bool_,)),
    "Pad": pad,
    "Pow": power,
    "PRelu": prelu,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
    "RandomNormal": random_of_shape,
    "RandomNormalLike": random_like,
    "RandomUniform": random_of_shape,
    "RandomUniformLike": random_like,
    "Range": range_,
    "Reciprocal": unary(low=0.2),
    "ReduceL1": reduction(),
    "ReduceL2": reduction(FLOATS, 0.1),
    "ReduceLogSum": reduction(FLOATS, 0.1),
    "ReduceLogSumExp": reduction(FLOATS),
    "ReduceMax": reduction(),
    "ReduceMean": reduction(),
    "ReduceMin": reduction(),
    "ReduceProd": reduction(low=0.5, high=1.5),
    "ReduceSum": reduction(input_since=13),
    "ReduceSumSquare": reduction(),
    "RegexFullMatch": strings("RegexFullMatch"),
    "Relu": unary(FLOATS + SIGNED),
    "Reshape": reshape,
    "Resize": resize,
    "ReverseSequence": reverse_sequence,
    "RMSNormalization": norm(False),
    "RNN": recurrent(1, 1, activations=lambda g, n: [g.choose(["Tanh", "Relu"])] * n),
    "RoiAlign": roi_align,
    "RotaryEmbedding": rotary_embedding,
    "Round": unary(),
    "Scan": scan,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Selu": unary(alpha=number(1, 2), gamma=number(1, 2)),
    "SequenceAt": sequence("SequenceAt"),
    "SequenceConstruct": sequence("SequenceConstruct"),
    "SequenceEmpty": sequence("SequenceEmpty"),
    "SequenceErase": sequence("SequenceErase"),
    "SequenceInsert": sequence("SequenceInsert"),
    "SequenceLength": sequence("SequenceLength"),
    "SequenceMap": sequence("SequenceMap"),
    "Shape": shape_of,
    "Shrink": unary((np.float32,), lambd=number(0.2, 1), bias=number(0, 1)),
    "Sigmoid": unary(),
    "Sign": unary(NUMBERS),
    "SimplifiedLayerNormalization": simplified_norm,
    "Sin": unary((np.float32, np.float64)),
    "Sinh": unary((np.float32,)),
    "Size": unary(ANYTHING),
    "Slice": slice_,
    "Softmax": softmax,
    "SoftmaxCrossEntropyLoss": class_loss(False),
    "Softplus": unary(),
    "Softsign": unary(),
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "SplitToSequence": sequence("SplitToSequence"),
    "Sqrt": unary(low=0.1),
    "Squeeze": squeeze,
    "STFT": stft,
    "StringConcat": strings("StringConcat"),
    "StringNormalizer": strings("StringNormalizer"),
    "StringSplit": strings("StringSplit"),
    "Sub": binary(),
    "Sum": variadic(FLOATS),
    "SwiGLU": swiglu,
    "Swish": swish,
    "Tan": unary((np.float32,), -1.2, 1.2),
    "Tanh": unary(),
    "TensorScatter": tensor_scatter,
    "TfIdfVectorizer": tf_idf,
    "ThresholdedRelu": unary((np.float32,), alpha=number(-1, 2)),
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
    "Upsample": upsample,
    "Where": where,
    "Xor": binary((np.bool_,)),
}
# Other domains in front of the name.
GENERATORS |= {f"ai.onnx.ml.{name}": generate for name, generate in LEARNED.items()}
ROUNDS |= {"ai.onnx.ml." + name for name in LEARNED if name.startswith(("Linear", "Normalizer", "Scaler", "Tree"))}
JUMPS |= {"ai.onnx.ml.Binarizer", "ai.onnx.ml.LinearClassifier", "ai.onnx.ml.TreeEnsembleClassifier",
          "ai.onnx.ml.TreeEnsembleRegressor"}
PREFIX = "com.microsoft."
GENERATORS |= {PREFIX + name: generate for name, generate in MICROSOFT.items()}
ROUNDS |= {PREFIX + name for name in MICROSOFT if not name.startswith(("QLinearConcat", "QLinearWhere"))}
JUMPS |= {PREFIX + name for name in MICROSOFT if name.startswith("QLinear")} | {PREFIX + "QGemm"}
