// SPDX-License-Identifier: Apache-2.0
#include "tools/support/dims.h"

#include <algorithm>
#include <charconv>

namespace forge::tools {
namespace {

// The whole text as a number that is not negative.
std::optional<int64_t> ParseExtent(std::string_view text) {
  int64_t n = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, n);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end || n < 0) return std::nullopt;
  return n;
}

absl::Status Add(const std::string& symbol, int64_t n, DimMap& dims) {
  const auto [at, fresh] = dims.emplace(symbol, n);
  if (!fresh && at->second != n)
    return InvalidArgument("dimension '{}' is given twice: as {} and as {}", symbol, at->second, n);
  return absl::OkStatus();
}

// What one --shape says of the dimensions of its input.
absl::Status BindShape(const std::string& input, const std::vector<std::string>& shape,
                       const ir::Type& type, DimMap& dims) {
  if (type.shape().size() != shape.size())
    return InvalidArgument("--shape gives input '{}' {} dimensions, but its type is {}", input,
                           shape.size(), type.ToText());
  for (size_t i = 0; i < shape.size(); ++i) {
    const ir::Dim& d = type.shape()[i];
    std::vector<ir::SymbolRef> symbols;
    d.CollectSymbols(symbols);
    const bool is_symbol = symbols.size() == 1 && d == ir::Dim(symbols[0]);
    const std::optional<int64_t> n = ParseExtent(shape[i]);
    if (n && is_symbol) {
      FORGE_RETURN_IF_ERROR(Add(symbols[0]->name, *n, dims));
    } else if (!(n && d.is_constant() && d.constant() == *n) && shape[i] != d.ToText()) {
      return InvalidArgument(
          "--shape {}: dimension {} is {}, but the model has {}; forge-convert --shape changes the "
          "shape of a model",
          input, i, shape[i], d.ToText());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DimMap> ParseDims(const std::vector<std::string>& arguments) {
  DimMap out;
  for (const std::string& a : arguments) {
    const size_t equals = a.rfind('=');
    const std::optional<int64_t> n =
        equals == a.npos || equals == 0 ? std::nullopt : ParseExtent(a.substr(equals + 1));
    if (!n) return InvalidArgument("'{}' is not of the form SYMBOL=N", a);
    FORGE_RETURN_IF_ERROR(Add(a.substr(0, equals), *n, out));
  }
  return out;
}

absl::StatusOr<Shapes> ParseShapes(const std::vector<std::string>& arguments) {
  Shapes out;
  for (const std::string& a : arguments) {
    const size_t equals = a.rfind('=');
    if (equals == a.npos || equals == 0)
      return InvalidArgument("'{}' is not of the form NAME=1,3,H,W", a);
    const std::string input = a.substr(0, equals);
    if (out.contains(input))
      return InvalidArgument("the shape of input '{}' is given twice", input);
    std::vector<std::string>& dims = out[input];
    for (size_t at = equals + 1; at < a.size();) {
      const size_t end = std::min(a.find(',', at), a.size());
      if (end == at || end + 1 == a.size())
        return InvalidArgument("'{}' is not of the form NAME=1,3,H,W", a);
      dims.push_back(a.substr(at, end - at));
      at = end + 1;
    }
  }
  return out;
}

absl::StatusOr<DimMap> DimsOf(const std::vector<std::string>& dims,
                              const std::vector<std::string>& shapes, const ir::Function& main) {
  FORGE_ASSIGN_OR_RETURN(DimMap out, ParseDims(dims));
  FORGE_ASSIGN_OR_RETURN(const Shapes parsed, ParseShapes(shapes));
  for (const auto& [input, shape] : parsed) {
    const auto at = std::find_if(main.arguments().begin(), main.arguments().end(),
                                 [&](const auto& a) { return a.name == input; });
    if (at == main.arguments().end())
      return InvalidArgument("--shape: the model has no input '{}'", input);
    FORGE_RETURN_IF_ERROR(BindShape(input, shape, main.type(at->value), out));
  }
  return out;
}

absl::Status CheckBound(const std::vector<Session::Port>& ports, const DimMap& dims) {
  std::vector<std::string> open;
  std::string inputs;
  for (const Session::Port& p : ports) {
    std::vector<ir::SymbolRef> symbols;
    for (const ir::Dim& d : p.type.shape()) d.CollectSymbols(symbols);
    bool any = false;
    for (const ir::SymbolRef& s : symbols) {
      if (dims.contains(s->name)) continue;
      any = true;
      if (std::find(open.begin(), open.end(), s->name) == open.end()) open.push_back(s->name);
    }
    if (any)
      inputs += fmt::format("{}'{}' ({})", inputs.empty() ? "" : ", ", p.name, p.type.ToText());
  }
  if (open.empty()) return absl::OkStatus();
  std::string options;
  for (const std::string& name : open) options += fmt::format(" --dim {}=N", name);
  return InvalidArgument("open dimensions: give{}, for {} {}", options,
                         inputs.find("), '") == inputs.npos ? "input" : "inputs", inputs);
}

}  // namespace forge::tools
