// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/tuning.h"

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "codegen/schedules/emission.h"
#include "ir/text/key.h"

namespace forge::codegen {
namespace {

constexpr const Schedule* kSchedules[] = {
    &kConvDepthwise,
    &kConvWinograd,
    &kMatmulColumns,
    &kMatmulDots,
    &kMatmulWorkgroup,
    &kMatmulMatrix,
    &kMatmulShuffle,
    &kMatmulShared,
    &kMatmulSimple,
    &kConvDirect,
    &kPool,
    &kReduceRows,
    &kReduceOutputs,
    &kSoftmaxSplit,
    &kSoftmaxSubgroup,
    &kSoftmaxRows,
    &kSoftmaxSerial,
    &kSoftmaxStatisticsSubgroup,
    &kSoftmaxStatisticsRows,
    &kSoftmaxStatisticsSerial,
    &kLayerNormSubgroup,
    &kLayerNormRows,
    &kLayerNormSerial,
    &kLayerNormGradientSubgroup,
    &kLayerNormGradientRows,
    &kLayerNormGradientSerial,
    &kAttentionMatrix,
    &kAttentionShuffle,
    &kAttentionShared,
    &kAttentionGradient,
    &kWinogradKernels,
    &kUpdateSlice,
    &kRecurrentSteps,
    &kStepsGradient,
    &kScatterSum,
    &kScatterWords,
    &kScatterColumns,
    &kArgReduceRows,
    &kArgReduceOutputs,
    &kScanRows,
    &kScanColumns,
    &kTopK,
    &kSort,
    &kFourier,
    &kTranspose,
    &kElementwise,
};

// Mesa's llvmpipe takes all loops of an invocation for done after 65,535 trips in all
// (LP_MAX_TGSI_LOOP_ITERATIONS).
constexpr int64_t kMostTrips = 65'000;

bool Takes(const Schedule& s, const Region& r) {
  return (r.is_dense() || s.takes_encodings) &&
         (r.reduction() == nullptr || s.reduces != nullptr) && s.takes(r);
}

bool WritesNothing(const Region& r) {
  for (const ir::Function::Result& result : r.body().results())
    if (!(r.body().type(result.value).elements() == ir::Dim(0))) return false;
  return true;
}

absl::StatusOr<Choice> FirstThatFits(const Region& r, std::span<const Schedule* const> schedules) {
  std::string refusals;
  for (const Schedule* s : schedules) {
    if (!Takes(*s, r)) continue;
    Choice c{s, s->defaults(r)};
    const Verdict v = s->fits(r, c.parameters.get());
    if (v) return c;
    refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", s->name, v.text());
  }
  if (refusals.empty() && !r.is_dense())
    refusals = fmt::format("no kernel reads or writes the encoding {}", r.encoding()->name());
  if (refusals.empty())
    refusals = fmt::format("no schedule takes {}{}", r.anchor()->op.name(),
                           r.reduction() != nullptr ? " and a reduction of what it makes" : "");
  return Unimplemented("{}", refusals);
}

// Numbers of schedules are integers and switches.
int64_t Get(const Field& f, const void* parameters) {
  return f.kind == FieldKind::kBool ? int64_t{*static_cast<const bool*>(f.at_const(parameters))}
                                    : *static_cast<const int64_t*>(f.at_const(parameters));
}

void Set(const Field& f, void* parameters, int64_t value) {
  if (f.kind == FieldKind::kBool)
    *static_cast<bool*>(f.at(parameters)) = value != 0;
  else
    *static_cast<int64_t*>(f.at(parameters)) = value;
}

absl::StatusOr<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return InvalidArgument("'{}' is no number", text);
  return value;
}

// The text up to `separator`, which is taken away with it.
std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::vector<int64_t> ValuesOf(const Field& f) {
  if (f.kind == FieldKind::kBool) return {0, 1};
  std::vector<int64_t> values;
  for (std::string_view rest = f.choices; !rest.empty();) {
    const absl::StatusOr<int64_t> value = ParseNumber(TakeUntil(rest, '|'));
    FORGE_CHECK(value.ok());
    values.push_back(*value);
  }
  return values;
}

// The choices of one schedule, by how many of its numbers are not the defaults.
class Combinations {
 public:
  Combinations(const Region& r, const Schedule& s) : r_(r), s_(s), standing_(s.defaults(r)) {}
  // Passes those with `changes` other numbers that fit to `take`, until it says no.
  bool Each(size_t changes, absl::FunctionRef<bool(Choice)> take) { return From(0, changes, take); }

 private:
  // Of the numbers from `field` on.
  bool From(size_t field, size_t changes, absl::FunctionRef<bool(Choice)> take) {
    if (changes > s_.parameters.size() - field) return true;
    if (changes == 0) return Pass(take);
    const Field& f = s_.parameters[field];
    if (!From(field + 1, changes, take)) return false;
    const int64_t standing = Get(f, standing_.get());
    for (const int64_t value : ValuesOf(f)) {
      if (value == standing) continue;
      set_.emplace_back(&f, value);
      const bool goes_on = From(field + 1, changes - 1, take);
      set_.pop_back();
      if (!goes_on) return false;
    }
    return true;
  }
  bool Pass(absl::FunctionRef<bool(Choice)> take) {
    Choice c{&s_, s_.defaults(r_)};
    for (const auto& [f, value] : set_) Set(*f, c.parameters.get(), value);
    return !s_.fits(r_, c.parameters.get()) || take(std::move(c));
  }

  const Region& r_;
  const Schedule& s_;
  const std::shared_ptr<void> standing_;
  std::vector<std::pair<const Field*, int64_t>> set_;
};

}  // namespace

std::span<const Schedule* const> AllSchedules() { return kSchedules; }

absl::StatusOr<Choice> DefaultChoice(const Region& r) { return FirstThatFits(r, AllSchedules()); }

absl::StatusOr<Choice> SimplestChoice(const Region& r) {
  std::vector<const Schedule*> simplest_first(AllSchedules().rbegin(), AllSchedules().rend());
  return FirstThatFits(r, simplest_first);
}

Program Generate(const Region& r, const Choice& choice) {
  if (WritesNothing(r)) return Program{.kernel = "nothing"};
  Program program = choice.schedule->emit(r, choice.parameters.get());
  if (r.norm() != nullptr) PrependNorm(r, program);
  if (r.caps().runs_on_cpu)
    for (Launch& launch : program.launches)
      launch.kernel = LimitTrips(std::move(launch.kernel), kMostTrips);
  return program;
}

absl::StatusOr<Program> Generate(const Region& r) {
  if (WritesNothing(r)) return Program{.kernel = "nothing"};
  FORGE_ASSIGN_OR_RETURN(const Choice choice, DefaultChoice(r));
  return Generate(r, choice);
}

Verdict CanGenerate(const Region& r) {
  const absl::StatusOr<Choice> choice = DefaultChoice(r);
  return choice.ok() ? Verdict::Yes(std::string(choice->schedule->name))
                     : Verdict::No(std::string(Message(choice.status())));
}

std::string Choice::ToText() const {
  std::string text = std::string(schedule->name) + "(";
  for (const Field& f : schedule->parameters)
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.back() == '(' ? "" : ", ", f.name,
                   Get(f, parameters.get()));
  return text + ")";
}

std::vector<Choice> ChoicesFor(const Region& r, size_t most) {
  const absl::StatusOr<Choice> standing = DefaultChoice(r);
  if (!standing.ok() || most == 0) return {};
  std::vector<Choice> out = {*standing};
  const auto take = [&](Choice c) {
    if (out.size() < most && c.ToText() != standing->ToText()) out.push_back(std::move(c));
    return out.size() < most;
  };
  std::vector<Combinations> all;
  size_t longest = 0;
  for (const Schedule* s : AllSchedules()) {
    if (!Takes(*s, r)) continue;
    all.emplace_back(r, *s);
    longest = std::max(longest, s->parameters.size());
  }
  bool goes_on = out.size() < most;
  for (size_t changes = 0; changes <= longest; ++changes)
    for (Combinations& c : all) goes_on = goes_on && c.Each(changes, take);
  return out;
}

absl::StatusOr<Choice> ParseChoice(const Region& r, std::string_view text) {
  const std::string_view whole = text, name = TakeUntil(text, '(');
  const auto all = AllSchedules();
  const auto schedule =
      std::find_if(all.begin(), all.end(), [&](const Schedule* s) { return s->name == name; });
  if (schedule == all.end() || !Takes(**schedule, r))
    return InvalidArgument("'{}' names no schedule for this", whole);
  Choice choice{*schedule, (*schedule)->defaults(r)};
  for (std::string_view rest = TakeUntil(text, ')'); !rest.empty();) {
    std::string_view number = TakeUntil(rest, ',');
    while (number.starts_with(' ')) number.remove_prefix(1);
    const std::string_view key = TakeUntil(number, '=');
    FORGE_ASSIGN_OR_RETURN(const int64_t value, ParseNumber(number));
    const Fields fields = (*schedule)->parameters;
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == key; });
    if (field == fields.end()) return InvalidArgument("'{}': there is no '{}'", whole, key);
    const std::vector<int64_t> values = ValuesOf(*field);
    if (value != Get(*field, choice.parameters.get()) &&
        std::find(values.begin(), values.end(), value) == values.end())
      return InvalidArgument("'{}': {} cannot be {}", whole, key, value);
    Set(*field, choice.parameters.get(), value);
  }
  if (const Verdict v = (*schedule)->fits(r, choice.parameters.get()); !v)
    return Unimplemented("{}: {}", whole, v.text());
  return choice;
}

std::optional<Prepared> PreparedFor(const Region& r, const Choice& choice) {
  const Schedule& s = *choice.schedule;
  return s.prepares != nullptr ? s.prepares(r, choice.parameters.get()) : std::nullopt;
}

Verdict ReductionPays(const Region& r) {
  const absl::StatusOr<Choice> alone = DefaultChoice(r.WithoutReduction()), both = DefaultChoice(r);
  for (const absl::StatusOr<Choice>* choice : {&both, &alone})
    if (!choice->ok()) return Verdict::No(std::string(Message(choice->status())));
  const Schedule& s = *alone->schedule;
  if (both->schedule != &s)
    return Verdict::No(fmt::format("{} is quicker for {}", s.name, r.anchor()->op.name()));
  return s.reduces(r, alone->parameters.get());
}

absl::StatusOr<uint64_t> TuningKey(const Region& r) {
  FORGE_ASSIGN_OR_RETURN(const Choice by_default, DefaultChoice(r));
  return HashText(by_default.ToText(), HashText(ir::KeyOf(r.body())));
}

}  // namespace forge::codegen
