// SPDX-License-Identifier: Apache-2.0
// Models and answers from outside: tools/fetch-models brings the models, onnxruntime answers.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "ir/type/host_value.h"
#include "runtime/device/device.h"

namespace forge {

// The devices that can be opened here, "reference" among them.
std::vector<std::string> Devices();
// The device of that id, opened at its first use and kept; null where it cannot be opened.
DeviceRef OpenOnce(const std::string& id);

// Where tools/fetch-models puts a model of tests/models.tsv, whether or not it has run.
std::filesystem::path CachedModel(const std::string& name);

// The Python of the environment that tools/fetch-models --oracle makes.
std::filesystem::path OraclePython();

// The file that make_oracle.py keeps the tensor `name` in.
std::filesystem::path FileOf(const std::filesystem::path& folder, std::string name);

// The place of the greatest element of each row along the last axis.
std::vector<int64_t> ClassesOf(const ir::HostValue& v);

}  // namespace forge
