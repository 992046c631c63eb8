// SPDX-License-Identifier: Apache-2.0
// The parameters of schedules that fold an axis: their defaults, and which of them fit.
#pragma once
#include "codegen/schedules/scan/axis_fold.h"

namespace forge::codegen {

// An invocation for each row.
struct FoldColumns {
  int64_t workgroup = 64;
  int64_t across = 1;  // neighbouring rows to an invocation
  int64_t along = 1;   // elements of a row, loaded at once
  int64_t parts = 1;   // of a row, each an invocation's
  FoldTile tile() const { return {static_cast<int>(across), static_cast<int>(along)}; }
  static constexpr Field kFields[] = {
      FieldOf<&FoldColumns::workgroup>("workgroup", "Invocations in a workgroup.", "8|32|64|128"),
      FieldOf<&FoldColumns::across>("across", "Neighbouring rows to an invocation.", "1|2|4"),
      FieldOf<&FoldColumns::along>("along", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&FoldColumns::parts>("parts", "Invocations to a row.", "1|16|64|256")};
};

// A workgroup for each row.
struct FoldRows {
  int64_t workgroup = 128;
  int64_t along = 1;  // elements of a row, loaded at once
  int64_t parts = 1;  // of a row, each a workgroup's
  FoldTile tile() const { return {1, static_cast<int>(along)}; }
  static constexpr Field kFields[] = {
      FieldOf<&FoldRows::workgroup>("workgroup", "Invocations in a workgroup.", "64|128|256"),
      FieldOf<&FoldRows::along>("along", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&FoldRows::parts>("parts", "Workgroups to a row.", "1|16|64|256")};
};

// How a schedule splits the rows of an axis between invocations or workgroups.
struct FoldSplit {
  const Region& region;
  const FoldedAxis& axis;
  SplitRule rule = {};
  bool reads_twice = false;  // the second launch reads what the first does

  Verdict Fits(int64_t parts) const;
  int64_t DefaultParts(int64_t pieces, int64_t steps) const;
};
// For an invocation to each row: `gpu`, but on CPUs few invocations fill the cores.
SplitRule SplitFoldColumns(const Caps& caps, const SplitRule& gpu);

FoldColumns DefaultFoldColumns(const FoldSplit& split);
Verdict FoldColumnsFit(const FoldSplit& split, const FoldColumns& t);
FoldRows DefaultFoldRows(const FoldSplit& split);
// shortest: the least number of elements of a row that a workgroup is faster for
Verdict FoldRowsFit(const FoldSplit& split, const FoldRows& t, int64_t shortest);

}  // namespace forge::codegen
