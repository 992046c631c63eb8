// SPDX-License-Identifier: Apache-2.0
// The tests of the ONNX standard: models with inputs and the results that they must have, as the
// PyPI package onnx ships them. tools/fetch-models --onnx-tests brings them.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/type/host_value.h"
#include "runtime/device/named_tensor.h"

namespace forge {

// Where tools/fetch-models puts the suites, whether or not it has run.
std::filesystem::path StandardTestFolder();

// The names of the tests of a suite ("node"), sorted; empty where the suite was not fetched.
std::vector<std::string> StandardTests(const std::string& suite);

// The model of a test ("node/test_abs", "light/light_vgg19"), whether or not it is there.
std::filesystem::path StandardModel(const std::string& test);

// One data set of a test.
struct StandardData {
  std::vector<NamedTensor> inputs;
  std::vector<ir::HostValue> outputs;  // in the order of the model
};

// Reads the data sets of a test. Those of the suite "light" have no inputs of their own: they are
// n numbers from 0 to 1 in steps of 1 / n.
//   errors: DataLoss (damaged)
absl::StatusOr<std::vector<StandardData>> ReadStandardData(const std::string& test);

// Does a test draw random numbers? The standard leaves them to the implementation, with or without
// a seed ("the generator operator is non-deterministic"), and the files hold those of NumPy.
bool DrawsNumbers(std::string_view test);

// Compares a result as the standard's own runner does: equal element type and shape, and elements
// that differ by at most atol + rtol |want|; NaN equals NaN. Strings are equal; so are sequences
// item by item.
//   errors: FailedPrecondition naming the first element that differs
absl::Status CompareAsStandard(const ir::HostValue& want, const ir::HostValue& have);
// Compares kind, element type and shape alone.
absl::Status CompareTypes(const ir::HostValue& want, const ir::HostValue& have);

// The tests that fail, each with its cause.
class ExpectedFailures {
 public:
  ExpectedFailures() = default;
  // The cause why `test` ("node/test_abs") fails on the device ("vulkan:0"); empty where it passes.
  std::string CauseOf(const std::string& test, std::string_view device) const;
  std::vector<std::string> tests() const;

 private:
  friend ExpectedFailures ReadExpectedFailures(const std::filesystem::path& path);
  struct Row {
    std::string backend;  // "*": on all
    std::string cause;
  };
  std::multimap<std::string, Row> rows_;
};

// Reads lines of test, backend and cause, separated by tabs. FORGE_CHECKs that it can.
ExpectedFailures ReadExpectedFailures(const std::filesystem::path& path);

}  // namespace forge
