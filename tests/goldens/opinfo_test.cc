// SPDX-License-Identifier: Apache-2.0
// The samples of PyTorch's database of operators that opinfo.py maps to ops and writes to a file.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "ir/graph/module.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "tests/goldens/archive.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

using nlohmann::json;

struct Count {
  int passed = 0, failed = 0, refused = 0;
};

// The first result of an op beside PyTorch's.
absl::Status CompareSample(const AnyOp& op, std::span<const HostValue* const> in,
                           const HostValue& want,
                           const absl::StatusOr<std::vector<HostValue>>& got) {
  FORGE_RETURN_IF_ERROR(got.status());
  if ((*got)[0].type() != want.type())
    return InvalidArgument("{} has the type {}, not {}", op.name(), (*got)[0].type().ToText(),
                           want.type().ToText());
  return CompareResult(op, in, want, (*got)[0], 0);
}

// What the rule of an op says, without the shapes of one sample.
std::string Reason(const absl::Status& s) {
  std::string text(Message(s));
  const size_t place = text.find(": ");  // "line:column: "
  if (place != text.npos && text.find_first_not_of("0123456789:") == place + 1)
    text.erase(0, place + 2);
  for (size_t from = text.find('['); from != text.npos; from = text.find('[', from)) {
    const size_t to = text.find(']', from);
    text.erase(from, to == text.npos ? to : to - from + 1);
  }
  return text;
}

class OpInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = Environment("FORGE_OPINFO");
    if (!path) GTEST_SKIP() << "tests/goldens/opinfo.py runs it";
    FORGE_ASSERT_OK_AND_ASSIGN(goldens_, ReadGoldens(*path));
    std::string names = Environment("FORGE_OPINFO_DEVICES").value_or("");
    for (size_t end = 0; !names.empty(); names.erase(0, end == names.npos ? end : end + 1)) {
      end = names.find(',');
      FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(names.substr(0, end), {}));
      devices_.push_back(std::move(device));
    }
  }
  void Judge(const std::string& device, const json& entry, const absl::Status& s) {
    Count& count = counts_[device];
    ++(s.ok() ? count.passed : count.failed);
    if (!s.ok())
      ADD_FAILURE() << entry["op"] << " on " << device << ": " << s << "\n"
                    << entry["case"].get<std::string>();
  }
  void Run(const json& entry) {
    const auto module = FromText(entry["case"].get<std::string>());
    if (!module.ok()) {
      ++refusals_[fmt::format("{}: {}", entry["op"].get<std::string>(), Reason(module.status()))];
      return;
    }
    const AnyOp& op = (*module)->functions()[0]->nodes()[0].op;
    const Operands in(goldens_, entry["operands"]);
    const HostValue want = goldens_.At(entry["results"][0]);
    Judge("reference", entry, CompareSample(op, in.pointers, want, Evaluate(op, in.pointers)));
    Types types;
    for (const HostValue* v : in.pointers) types.push_back(v ? v->type() : Type());
    for (const DeviceRef& device : devices_) {
      const std::string& name = device->info().id;
      if (OpOnDevice::Support(*device, op, types).way == OpSupport::Way::kRefused) {
        ++counts_[name].refused;
        continue;
      }
      auto runner = OpOnDevice::Create(device, op, types);
      Judge(name, entry,
            runner.ok() ? CompareSample(op, in.pointers, want, (*runner)->Run(in.pointers))
                        : runner.status());
    }
  }

  Goldens goldens_;
  std::vector<DeviceRef> devices_;
  std::map<std::string, Count> counts_;
  std::map<std::string, int> refusals_;
};

TEST_F(OpInfoTest, SamplesGiveWhatPyTorchGives) {
  for (const json& entry : goldens_.index) Run(entry);
  for (const auto& [device, count] : counts_)
    std::cout << fmt::format("{}: {} passed, {} failed, {} refused\n", device, count.passed,
                             count.failed, count.refused);
  for (const auto& [reason, count] : refusals_)
    std::cout << fmt::format("refused: {} of {}\n", count, reason);
  EXPECT_FALSE(counts_.empty());
}

}  // namespace
}  // namespace forge::ir
