// SPDX-License-Identifier: Apache-2.0
// forge-self-test BACKEND INDEX [FEATURE...]: tries what the driver of a device may get wrong, but
// for the features named, and prints a line for each. The library runs it in a process of its own.
#include <charconv>
#include <cstdio>

#include "runtime/backends.h"

int main(int argc, char** argv) {
  size_t index = 0;
  const std::string_view number = argc > 2 ? argv[2] : "";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (number.empty() || error != std::errc() || end != number.data() + number.size()) {
    std::fprintf(stderr, "usage: forge-self-test BACKEND INDEX [FEATURE...]\n");
    return 2;
  }
  const std::vector<std::string> known(argv + 3, argv + argc);
  const auto status = [&]() -> absl::Status {
    FORGE_ASSIGN_OR_RETURN(forge::Driver * driver, forge::FindDriver(argv[1]));
    return driver->TryFeatures(index, known, [](std::string_view line) {
      std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
      std::fflush(stdout);  // the next line may never be told
    });
  }();
  if (status.ok()) return 0;
  std::fprintf(stderr, "forge-self-test: error: %s\n", std::string(forge::Message(status)).c_str());
  return 1;
}
