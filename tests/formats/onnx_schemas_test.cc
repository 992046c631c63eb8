// SPDX-License-Identifier: Apache-2.0
// The tables of operators against the schemas of the onnx package, which onnx_schemas.py lists, so
// that no operator and no version is missed in silence.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "formats/onnx/ops.h"

namespace forge::formats {
namespace {

struct Schema {
  std::string domain, name, how;
  int version = 0;
};

std::vector<Schema> ListedSchemas() {
  std::ifstream file(std::string(FORGE_SOURCE_DIR) + "/tests/formats/onnx_schemas.tsv");
  std::vector<Schema> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    Schema s;
    if (fields.size() != 4 || !absl::SimpleAtoi(fields[2], &s.version)) {
      ADD_FAILURE() << "a line with other than four fields: " << line;
      continue;
    }
    s.domain = fields[0], s.name = fields[1], s.how = fields[3];
    out.push_back(std::move(s));
  }
  return out;
}

TEST(OnnxSchemasTest, TheTablesAreWhatTheListSays) {
  const std::vector<Schema> schemas = ListedSchemas();
  EXPECT_GT(schemas.size(), 500U);
  for (const Schema& s : schemas) {
    const OnnxOp* op = FindOnnxOp(s.domain, s.name, s.version);
    const std::string_view how = op == nullptr            ? "missing"
                                 : op->since == s.version ? "row"
                                                          : "earlier";
    EXPECT_EQ(s.how, how) << s.domain << " " << s.name << " " << s.version;
  }
}

// A row with a version that no schema has would never be found where it is meant.
TEST(OnnxSchemasTest, EveryRowOfAStandardDomainIsAVersion) {
  std::set<std::tuple<std::string, std::string, int>> versions;
  std::set<std::string> domains;
  for (const Schema& s : ListedSchemas()) {
    versions.emplace(s.domain, s.name, s.version);
    domains.insert(s.domain);
  }
  for (const OnnxOp& op : OnnxOps()) {
    if (!domains.contains(std::string(op.domain))) continue;
    if (op.name == "SimplifiedLayerNormalization") continue;  // onnxruntime's, in this domain
    EXPECT_TRUE(versions.contains({std::string(op.domain), std::string(op.name), op.since}))
        << op.domain << " " << op.name << " " << op.since;
  }
}

}  // namespace
}  // namespace forge::formats
