// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/one_op.h"

#include "tests/ptx/runner.h"

namespace forge::ptx {
namespace {

constexpr char kNames[] = {'d', 'a', 'b', 'c', 'e'};

std::string Convert(char name, int bits, bool load) {
  if (bits == 1)
    return load ? fmt::format("setp.ne.u64 {}, wide, 0;\n", name)
                : fmt::format("selp.b64 wide, 1, 0, {};\n", name);
  if (bits == 64)
    return load ? fmt::format("mov.b64 {}, wide;\n", name)
                : fmt::format("mov.b64 wide, {};\n", name);
  return load ? fmt::format("cvt.u{0}.u64 {1}, wide;\n", bits, name)
              : fmt::format("cvt.u64.u{0} wide, {1};\n", bits, name);
}

std::string OneOpText(const std::string& instruction, const std::vector<int>& bits) {
  std::string text =
      ".version 8.7\n.target sm_100\n.address_size 64\n"
      ".visible .entry one(.param .u64 in, .param .u64 out, .param .u32 rows) {\n"
      ".reg .u32 lane, n;\n.reg .u64 from, to, wide, step;\n.reg .pred last;\n";
  for (size_t i = 0; i < bits.size(); ++i)
    text += fmt::format(".reg .{} {};\n", bits[i] == 1 ? "pred" : fmt::format("b{}", bits[i]),
                        kNames[i]);
  text +=
      "mov.u32 lane, %tid.x;\nld.param.u32 n, [rows];\nsetp.ge.u32 last, lane, n;\n@last bra "
      "done;\n"
      "ld.param.u64 from, [in];\nld.param.u64 to, [out];\n";
  text += fmt::format("mul.wide.u32 step, lane, {};\nadd.u64 from, from, step;\n", 8 * bits.size());
  text += "mul.wide.u32 step, lane, 8;\nadd.u64 to, to, step;\n";
  for (size_t i = 0; i < bits.size(); ++i)
    text +=
        fmt::format("ld.global.u64 wide, [from+{}];\n", 8 * i) + Convert(kNames[i], bits[i], true);
  // A block is no statement that a semicolon ends.
  text += instruction + (instruction.starts_with('{') ? "\n" : ";\n") +
          Convert('d', bits[0], false) + "st.global.u64 [to], wide;\ndone:\nret;\n}\n";
  return text;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> Execute(const std::string& instruction,
                                              const std::vector<int>& bits,
                                              const std::vector<std::vector<uint64_t>>& rows) {
  std::vector<uint64_t> in, out(rows.size());
  for (const std::vector<uint64_t>& row : rows) {
    in.push_back(0);
    in.insert(in.end(), row.begin(), row.end());
    in.resize((in.size() + bits.size() - 1) / bits.size() * bits.size());
  }
  RunOptions options;
  options.threads = {static_cast<uint32_t>((rows.size() + 31) / 32 * 32)};
  FORGE_RETURN_IF_ERROR(RunPtx(OneOpText(instruction, bits), "one", options,
                               {Argument::Buffer(in), Argument::Buffer(out),
                                Argument::Scalar(static_cast<uint32_t>(rows.size()))}));
  return out;
}

}  // namespace forge::ptx
