// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "formats/model_bin/model_bin.h"
#include "formats/onnx/importer.h"
#include "ir/cases/case_inputs.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/temp_folder.h"

namespace forge::fuzz {
namespace {

constexpr size_t kLargest =
    4096;  // bytes: what is much larger is mutated too seldom where it counts

class Collector {
 public:
  void Add(const ir::Module& module) {
    const std::filesystem::path path = folder_ / "model.bin";
    if (!ir::Verify(module).ok() || !WriteModel(module, path).ok()) return;
    std::ifstream in(path, std::ios::binary);
    std::string file{std::istreambuf_iterator<char>(in), {}};
    if (file.size() <= kLargest) files_.push_back(std::move(file));
  }
  Files Take() { return std::move(files_); }

 private:
  TempFolder folder_;
  Files files_;
};

// y = op(...), every second operand a parameter.
void AddCase(const ir::ConcreteCase& c, Collector& to) {
  ir::Module module;
  ir::Function& f = *module.AddFunction("main");
  const absl::StatusOr<ir::CaseInputs> inputs = ir::MakeInputs(c);
  if (!inputs.ok()) return;
  ir::Values in;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const ir::Type& type = c.in[i].type;
    if (!inputs->values[i]) {
      in.emplace_back();
    } else if (i % 2 == 0) {
      in.push_back(f.Argument(fmt::format("x{}", i), type));
    } else {
      ir::Variable v;
      v.name = fmt::format("w{}", i);
      v.role = ir::Variable::Role::kParameter;
      v.type = type;
      v.init = ir::Variable::Storage{inputs->values[i]->shared_bytes(), type, {}};
      in.push_back(f.Read(module.AddVariable(std::move(v))));
    }
  }
  const ir::Values out = f.Add(c.op, in);
  for (size_t k = 0; k < out.size(); ++k) f.Return(fmt::format("y{}", k), out[k]);
  if (f.status().ok()) to.Add(module);
}

}  // namespace

Files ModelBinSeeds() {
  constexpr size_t kCasesOfAnOp = 6;
  Collector models;
  for (const ir::OpDef* op : ir::AllOps()) {
    const auto cases = ir::ConcreteCases(*op);
    if (!cases.ok()) continue;
    const size_t stride = std::max<size_t>(1, cases->size() / kCasesOfAnOp);
    for (size_t i = 0; i < cases->size(); i += stride)
      if ((*cases)[i].refuse.empty() && !(*cases)[i].bench) AddCase((*cases)[i], models);
  }
  for (const std::string& file : OnnxSeeds()) {
    const auto module = ImportOnnx(Bytes(std::vector<uint8_t>(file.begin(), file.end())), "m.onnx",
                                   /*folder=*/{});
    if (module.ok()) models.Add(**module);
  }
  return models.Take();
}

}  // namespace forge::fuzz
