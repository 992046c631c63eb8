// SPDX-License-Identifier: Apache-2.0
#include "tools/support/tensor_io.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/platform.h"
#include "formats/arrays/npy.h"
#include "formats/images/image.h"
#include "formats/images/preprocess.h"

namespace forge::tools {
namespace {

// splitmix64: the state is the seed, so any element can be had by itself.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

absl::StatusOr<const Session::Port*> FindPort(std::string_view name,
                                              const std::vector<Session::Port>& ports) {
  if (name.empty() && ports.size() == 1) return &ports[0];
  std::string known;
  for (const auto& p : ports) {
    if (p.name == name) return &p;
    known += (known.empty() ? "" : ", ") + p.name + ": " + p.type.ToText();
  }
  if (name.empty())
    return InvalidArgument("the model has several inputs: give --input NAME=... with one of {}",
                           known);
  return InvalidArgument("the model has no input '{}'; its inputs are {}", name, known);
}

absl::StatusOr<std::vector<int64_t>> ShapeOf(const Session::Port& port, const DimMap& dims) {
  FORGE_RETURN_IF_ERROR(CheckBound({port}, dims));
  ir::Bindings bindings;
  std::vector<int64_t> shape;
  for (const ir::Dim& d : port.type.shape()) {
    std::vector<ir::SymbolRef> symbols;
    d.CollectSymbols(symbols);
    for (const ir::SymbolRef& s : symbols) bindings[s] = dims.at(s->name);
    FORGE_ASSIGN_OR_RETURN(int64_t n, d.Evaluate(bindings));
    shape.push_back(n);
  }
  return shape;
}

absl::StatusOr<ir::HostValue> ReadPicture(const std::string& file, const Model& model,
                                          const Presentation& p) {
  const std::string spec(p.preprocess.empty() ? std::string(model.Metadata("preprocess"))
                                              : p.preprocess);
  FORGE_ASSIGN_OR_RETURN(Preprocess how, ParsePreprocess(spec));
  FORGE_ASSIGN_OR_RETURN(ir::HostValue image, ReadImage(file));
  auto tensor = ApplyPreprocess(how, image);
  if (!tensor.ok()) return Annotate(tensor.status(), file);
  return tensor;
}

bool EndsWith(const std::string& s, std::string_view end) {
  return s.size() >= end.size() &&
         std::equal(end.rbegin(), end.rend(), s.rbegin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(b)) == a;
         });
}

bool IsRandom(const std::string& what) { return what == "random" || what.starts_with("random:"); }

bool IsPicture(const std::string& what) {
  return EndsWith(what, ".png") || EndsWith(what, ".jpg") || EndsWith(what, ".jpeg");
}

absl::StatusOr<ir::HostValue> ReadOne(const std::string& what, const Session::Port& port,
                                      const DimMap& dims, const Model& model,
                                      const Presentation& p) {
  if (IsRandom(what)) {
    uint64_t seed = 0;
    if (what.size() > 7) {
      const char* end = what.data() + what.size();
      if (auto r = std::from_chars(what.data() + 7, end, seed); r.ec != std::errc() || r.ptr != end)
        return InvalidArgument("'{}' is not a seed; give random:NUMBER", what);
    }
    FORGE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ShapeOf(port, dims));
    return RandomTensor(port.type.dtype(), shape, seed);
  }
  if (EndsWith(what, ".npy")) return ReadNpy(what);
  if (port.type.is_tensor() && port.type.dtype() == DType::kString)
    return ir::HostValue::Strings(std::vector<int64_t>(static_cast<size_t>(port.type.rank()), 1),
                                  std::array{what});
  if (IsPicture(what)) return ReadPicture(what, model, p);
  double number = 0;
  const auto r = std::from_chars(what.data(), what.data() + what.size(), number);
  if (!what.empty() && r.ec == std::errc() && r.ptr == what.data() + what.size()) {
    if (port.type.rank() != 0)
      return InvalidArgument("input '{}' is {}, not a scalar", port.name, port.type.ToText());
    return ir::HostValue::Scalar(port.type.dtype(), number);
  }
  return InvalidArgument(
      "input '{}': '{}' is neither .npy, .npz, .png, .jpg, random[:SEED] nor a number", port.name,
      what);
}

// Two batches as one.
absl::StatusOr<ir::HostValue> Stack(const ir::HostValue& a, const ir::HostValue& b,
                                    std::string_view name) {
  const bool same = a.dtype() == b.dtype() && a.rank() == b.rank() && a.rank() > 0 &&
                    std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1);
  if (!same)
    return InvalidArgument("input '{}' is given as {} and as {}, which cannot be concatenated",
                           name, a.type().ToText(), b.type().ToText());
  std::vector<int64_t> shape(a.shape().begin(), a.shape().end());
  shape[0] += b.dim(0);
  std::vector<uint8_t> bytes(a.bytes().begin(), a.bytes().end());
  bytes.insert(bytes.end(), b.bytes().begin(), b.bytes().end());
  return ir::HostValue::Of(a.dtype(), shape, forge::Bytes(std::move(bytes)));
}

}  // namespace

absl::StatusOr<ir::HostValue> RandomTensor(DType dtype, std::span<const int64_t> shape,
                                           uint64_t seed) {
  if (dtype == DType::kString) return InvalidArgument("strings are not drawn at random");
  FORGE_ASSIGN_OR_RETURN(ir::HostValue v, ir::HostValue::Zeros(dtype, shape));
  const bool is_float = Has(kFloatTypes, dtype);
  for (int64_t i = 0; i < v.elements(); ++i) {
    const uint64_t bits = Mix(Mix(seed) + static_cast<uint64_t>(i));
    if (is_float)
      v.Set(i, static_cast<double>(bits >> 40) * 0x1p-23 - 1);
    else
      v.SetI64(i, static_cast<int64_t>(bits >> 32) % (dtype == DType::kBool ? 2 : 10));
  }
  return v;
}

namespace {

// An --input argument in two: what input, and what it is to be.
struct InputArgument {
  std::string name, what;
};

InputArgument Split(const std::string& argument, const std::vector<Session::Port>& ports) {
  // A name may hold '=' itself, a file hardly ever does: the longest known name wins.
  size_t split = argument.find('=');
  for (const auto& port : ports)
    if (argument.starts_with(port.name + "=")) split = port.name.size();
  if (split == argument.npos) return {"", argument};
  return {argument.substr(0, split), argument.substr(split + 1)};
}

// What can be refused before any file is read, all of it at once.
absl::Status CheckArguments(std::span<const InputArgument> arguments,
                            const std::vector<Session::Port>& ports, const DimMap& dims,
                            const Presentation& p) {
  std::vector<Session::Port> random;
  bool picture = false;
  for (const InputArgument& a : arguments) {
    picture |= IsPicture(a.what);
    if (!IsRandom(a.what)) continue;
    FORGE_ASSIGN_OR_RETURN(const Session::Port* port, FindPort(a.name, ports));
    random.push_back(*port);
  }
  if (!p.preprocess.empty() && !picture)
    return InvalidArgument("--preprocess has no effect: no input is a picture");
  return CheckBound(random, dims);
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ReadInputs(const std::vector<std::string>& arguments,
                                                    const std::vector<Session::Port>& ports,
                                                    const DimMap& dims, const Model& model,
                                                    const Presentation& p) {
  std::vector<NamedTensor> inputs;
  std::vector<InputArgument> split;
  for (const std::string& argument : arguments) split.push_back(Split(argument, ports));
  FORGE_RETURN_IF_ERROR(CheckArguments(split, ports, dims, p));
  for (const auto& [name, what] : split) {
    if (EndsWith(what, ".npz")) {
      FORGE_ASSIGN_OR_RETURN(auto arrays, ReadNpz(what));
      for (auto& [key, value] : arrays) {
        FORGE_ASSIGN_OR_RETURN(const Session::Port* port, FindPort(key, ports));
        inputs.push_back({port->name, std::move(value)});
      }
      continue;
    }
    FORGE_ASSIGN_OR_RETURN(const Session::Port* port, FindPort(name, ports));
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value, ReadOne(what, *port, dims, model, p));
    auto given = std::find_if(inputs.begin(), inputs.end(),
                              [&](const NamedTensor& t) { return t.name == port->name; });
    if (port->type.kind() == ir::Type::Kind::kSequence) {
      // Each is an item.
      if (given == inputs.end())
        given =
            inputs.insert(given, {port->name, ir::HostValue::Sequence(port->type.element(), {})});
      std::vector<ir::HostValue> items(given->value.items().begin(), given->value.items().end());
      items.push_back(std::move(value));
      given->value = ir::HostValue::Sequence(port->type.element(), std::move(items));
    } else if (given == inputs.end()) {
      inputs.push_back({port->name, std::move(value)});
    } else {
      FORGE_ASSIGN_OR_RETURN(given->value, Stack(given->value, value, port->name));
    }
  }
  return inputs;
}

std::string FileName(std::string_view tensor) {
  std::string out(tensor);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("._:-").find(c) == std::string_view::npos)
      c = '_';
  return out;
}

absl::StatusOr<std::vector<std::string>> FileNames(std::span<const Session::Port> tensors) {
  std::vector<std::string> out;
  std::map<std::string, std::string_view> owner;
  for (const Session::Port& t : tensors) {
    out.push_back(FileName(t.name));
    const auto [at, fresh] = owner.emplace(out.back(), t.name);
    if (!fresh)
      return InvalidArgument(
          "'{}' and '{}' would both be written to {}.npy; select one of them with --output",
          at->second, t.name, out.back());
  }
  return out;
}

namespace {

// The items of sequences as outputs of their own, NAME.0, NAME.1 ...
std::vector<NamedTensor> TensorsOf(const std::vector<NamedTensor>& outputs) {
  std::vector<NamedTensor> tensors;
  for (const NamedTensor& t : outputs) {
    if (t.value.is_tensor()) tensors.push_back(t);
    for (size_t i = 0; i < t.value.items().size(); ++i)
      tensors.push_back({fmt::format("{}.{}", t.name, i), t.value.items()[i]});
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::vector<std::filesystem::path>> WriteOutputs(
    const std::vector<NamedTensor>& results, const std::filesystem::path& folder) {
  const std::vector<NamedTensor> outputs = TensorsOf(results);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Internal("cannot create the folder {}: {}", folder.string(), error.message());
  std::vector<Session::Port> ports;
  for (const NamedTensor& t : outputs) ports.push_back({t.name, t.value.type()});
  FORGE_ASSIGN_OR_RETURN(const std::vector<std::string> names, FileNames(ports));
  std::vector<std::filesystem::path> paths;
  for (size_t i = 0; i < outputs.size(); ++i) {
    paths.push_back(folder / (names[i] + ".npy"));
    absl::Status s = WriteNpy(paths.back(), outputs[i].value);
    if (s.ok()) continue;
    // Nothing half-done stays behind.
    for (const auto& path : paths) std::filesystem::remove(path, error);
    return s;
  }
  return paths;
}

std::string Summary(const NamedTensor& t) {
  const int64_t n = t.value.elements();
  std::string out = fmt::format("{}: {}", t.name, t.value.type().ToText());
  for (size_t i = 0; i < t.value.items().size(); ++i)
    out += "\n  " + Summary({fmt::format("{}.{}", t.name, i), t.value.items()[i]});
  if (t.value.is_tensor() && t.value.dtype() == DType::kString) {
    out += "\n  ";
    for (int64_t i = 0; i < std::min<int64_t>(n, 8); ++i)
      out += fmt::format("'{}' ", t.value.string(i));
    return out + (n > 8 ? "..." : "");
  }
  if (n == 0 || !Has(kRealTypes | Bit(DType::kBool), t.value.dtype())) return out;
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t odd = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = t.value.f64(i);
    if (!std::isfinite(v))
      ++odd;
    else
      low = std::min(low, v), high = std::max(high, v), sum += v;
  }
  out += fmt::format("  min {:.6g}, max {:.6g}, mean {:.6g}", low, high,
                     sum / static_cast<double>(std::max<int64_t>(1, n - odd)));
  if (odd) out += fmt::format(", {} not finite", odd);
  out += "\n  ";
  for (int64_t i = 0; i < std::min<int64_t>(n, 8); ++i)
    out += fmt::format("{:.6g} ", t.value.f64(i));
  return out + (n > 8 ? "..." : "");
}

absl::StatusOr<std::vector<std::string>> Labels(const Model& model, const Presentation& p) {
  std::vector<std::string> labels;
  if (!p.labels.empty()) {
    FORGE_ASSIGN_OR_RETURN(forge::Bytes file, MapFile(p.labels));
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string line(text.substr(at, end - at));
      if (!line.empty() && line.back() == '\r') line.pop_back();
      labels.push_back(std::move(line));
      at = end + 1;
    }
    return labels;
  }
  const auto json = nlohmann::json::parse(std::string(model.Metadata("labels")), nullptr, false);
  if (json.is_array())
    for (const auto& label : json)
      if (label.is_string()) labels.push_back(label.get<std::string>());
  return labels;
}

// What may be left above 1 of a confidence in a narrow element type.
constexpr double kRounding = 1e-2;

std::vector<std::vector<Scored>> TopClasses(const ir::HostValue& scores,
                                            const std::vector<std::string>& labels, int top) {
  std::vector<std::vector<Scored>> rows;
  const int64_t classes = static_cast<int64_t>(labels.size());
  if (classes == 0 || scores.rank() == 0 || scores.shape().back() != classes) return rows;
  for (int64_t i = 0; i < scores.elements(); ++i)
    if (!(scores.f64(i) >= 0 && scores.f64(i) <= 1 + kRounding)) return rows;
  for (int64_t row = 0; row < scores.elements() / classes; ++row) {
    std::vector<int64_t> order(classes);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return scores.f64(row * classes + a) > scores.f64(row * classes + b);
    });
    rows.emplace_back();
    for (int64_t i = 0; i < std::min<int64_t>(top, classes); ++i)
      rows.back().push_back({labels[order[i]], scores.f64(row * classes + order[i])});
  }
  return rows;
}

}  // namespace forge::tools
