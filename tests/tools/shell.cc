// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/shell.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace forge::testing {

const std::string kBin = std::string(FORGE_BINARY_DIR) + "/bin/";
const std::string kSource = FORGE_SOURCE_DIR;
const std::string kModel = std::string(FORGE_BINARY_DIR) + "/share/forge/models/fashion.bin";
const std::string kPicture = kSource + "/examples/fashion/pictures/bag.png";

std::string Slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Write(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string Quoted(const std::filesystem::path& p) { return "'" + p.string() + "'"; }

Outcome Shell(const std::string& command, const std::string& environment) {
  TempFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int status =
      std::system((environment + kBin + command + " >'" + out + "' 2>'" + err + "'").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Slurp(out), Slurp(err)};
}

bool IsHere(const std::string& device) {
  return Shell("forge-run --device " + device + " " + kModel + " --input image=" + kPicture)
             .status != 4;
}

void ExpectFailure(const std::string& command, const std::string& part) {
  const Outcome o = Shell(command);
  EXPECT_EQ(o.status, 1) << command << "\n" << o.err;
  EXPECT_NE(o.err.find(part), std::string::npos) << command << "\n" << o.err;
}

void ExpectError(const std::string& command, int status, const std::string& part) {
  SCOPED_TRACE(command);
  const Outcome o = Shell(command);
  EXPECT_EQ(o.status, status) << o.err;
  EXPECT_NE(o.err.find("error: "), std::string::npos) << o.err;
  EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  EXPECT_EQ(o.out, "");
}

}  // namespace forge::testing
