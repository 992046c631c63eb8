// SPDX-License-Identifier: Apache-2.0
// The programs of the build tree, run as a person runs them.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_folder.h"

namespace forge::testing {

extern const std::string kBin;  // the folder of the programs, with a slash at its end
extern const std::string kSource, kModel, kPicture;

struct Outcome {
  int status;  // 128 + the signal's number when one ended it
  std::string out, err;
};

std::string Slurp(const std::filesystem::path& path);
void Write(const std::filesystem::path& path, std::string_view content);
std::string Quoted(const std::filesystem::path& p);

// Runs a program of the build tree.
//   environment: "NAME='value' ", before the program
Outcome Shell(const std::string& command, const std::string& environment = "");
// Whether a device of that name can be used.
bool IsHere(const std::string& device);
// Status 1, and `part` in the sentence on stderr; what was found may be on stdout.
void ExpectFailure(const std::string& command, const std::string& part);
// One sentence on stderr that holds `part`, the status of the contract, nothing else.
void ExpectError(const std::string& command, int status, const std::string& part);

}  // namespace forge::testing
