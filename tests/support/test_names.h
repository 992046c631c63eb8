// SPDX-License-Identifier: Apache-2.0
// Names that GoogleTest takes for the parameters of tests.
#pragma once
#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace forge {

// The text with '_' for all but letters and digits.
inline std::string AsTestName(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

// Names a test by its parameter, a device or a model.
inline std::string NameOfParameter(const ::testing::TestParamInfo<std::string>& info) {
  return AsTestName(info.param);
}

}  // namespace forge
