// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors. Items share the bytes of the tensors that they were made of.
#pragma once
#include "ir/ops/host/host_step.h"

namespace forge::ir {

// A sequence of its operands; without any, one for elements of `dtype`.
struct SequenceConstruct {
  DType dtype = DType::kF32;

  static constexpr OpInfo kInfo{.name = "sequence_construct",
                                .formula = "y = [x, ...]",
                                .inputs = "x: value?...",
                                .outputs = "y: value",
                                .source = "ONNX SequenceConstruct-11, SequenceEmpty-11",
                                .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&SequenceConstruct::dtype>("dtype", "Of the items, where there are none.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const SequenceConstruct*);

struct SequenceInsert {
  static constexpr OpInfo kInfo{
      .name = "sequence_insert",
      .formula = "s with x before the item at position; at the end where no position is given",
      .inputs = "s: value; x: value; position: value?",
      .outputs = "y: value",
      .source = "ONNX SequenceInsert-11",
      .host = true};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const SequenceInsert*);

struct SequenceErase {
  static constexpr OpInfo kInfo{
      .name = "sequence_erase",
      .formula = "s without the item at position; without the last where none is given",
      .inputs = "s: value; position: value?",
      .outputs = "y: value",
      .source = "ONNX SequenceErase-11",
      .host = true};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const SequenceErase*);

struct SequenceAt {
  bool whole_tensors = false;

  static constexpr OpInfo kInfo{.name = "sequence_at",
                                .formula = "the item of s at position; negative: from the end",
                                .inputs = "s: value; position: value",
                                .outputs = "y: value",
                                .source = "ONNX SequenceAt-11",
                                .host = true};
  static constexpr Field kFields[] = {FieldOf<&SequenceAt::whole_tensors>(
      "whole_tensors", "A tensor in place of the sequence is the item at every position.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const SequenceAt*);

struct SequenceLength {
  static constexpr OpInfo kInfo{.name = "sequence_length",
                                .formula = "how many items s has, as i64[]",
                                .inputs = "s: value",
                                .outputs = "n: value",
                                .source = "ONNX SequenceLength-11",
                                .host = true};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const SequenceLength*);

struct SplitToSequence {
  int64_t axis = 0;
  bool keep_dims = true;

  static constexpr OpInfo kInfo{
      .name = "split_to_sequence",
      .formula = "parts of x along the axis, of `split` elements each or as the list says",
      .inputs = "x: value; split: value?",
      .outputs = "y: value",
      .source = "ONNX SplitToSequence-24",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&SplitToSequence::axis>("axis", "Negative counts from the end."),
      FieldOf<&SplitToSequence::keep_dims>("keep_dims", "Of parts of one, where none is given.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const SplitToSequence*);

struct ConcatFromSequence {
  int64_t axis = 0;
  bool new_axis = false;

  static constexpr OpInfo kInfo{.name = "concat_from_sequence",
                                .formula = "the items of s along an axis, theirs or a new one",
                                .inputs = "s: value",
                                .outputs = "y: value",
                                .source = "ONNX ConcatFromSequence-11",
                                .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&ConcatFromSequence::axis>("axis", "Negative counts from the end."),
      FieldOf<&ConcatFromSequence::new_axis>("new_axis", "The axis is an additional one.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const ConcatFromSequence*);

// The optional that holds no value.
struct NoValue {
  Type of = Type::Unknown();

  static constexpr OpInfo kInfo{.name = "no_value",
                                .formula = "an optional without a value",
                                .inputs = "",
                                .outputs = "y: value",
                                .source = "ONNX Optional-15",
                                .host = true};
  static constexpr Field kFields[] = {FieldOf<&NoValue::of>("of", "What the optional is one of.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const NoValue*);

}  // namespace forge::ir
