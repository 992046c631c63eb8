// SPDX-License-Identifier: Apache-2.0
// From a bound function to recorded segments: compile, place, record.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/plan/executable.h"

namespace forge {
namespace {

std::string Label(const ir::Node& node) {
  return node.from ? node.from->ToText() : std::string(node.op.name());
}

std::string TypeList(const ir::Types& types) {
  std::string out;
  for (const ir::Type& t : types)
    out += (out.empty() ? "" : ", ") + (t ? t.ToText() : std::string("-"));
  return out;
}

}  // namespace

class ExecutableBuilder {
 public:
  ExecutableBuilder(const Executable::Inputs& inputs, const Executable::Options& options)
      : inputs_(inputs), options_(options), f_(inputs.function), made_(new Executable) {
    made_->device_ = inputs.device;
    made_->function_ = &f_;
    made_->step_symbols_.assign(inputs.step_symbols.begin(), inputs.step_symbols.end());
    made_->places_.resize(f_.value_count());
    root_.resize(f_.value_count());
    for (uint32_t v = 0; v < f_.value_count(); ++v) root_[v] = v;
  }

  absl::StatusOr<std::unique_ptr<Executable>> Build() {
    FORGE_RETURN_IF_ERROR(Compile());
    if (options_.compile_only) {
      AddNodes();
      return std::move(made_);
    }
    if (inputs_.wait_for_variables) FORGE_RETURN_IF_ERROR(inputs_.wait_for_variables());
    FORGE_RETURN_IF_ERROR(PlaceVariables());
    FORGE_RETURN_IF_ERROR(PlaceStaging());
    FORGE_RETURN_IF_ERROR(PlaceArena());
    FORGE_RETURN_IF_ERROR(CheckCancelled(options_.compile.cancel));
    FORGE_RETURN_IF_ERROR(AddSteps());
    FORGE_RETURN_IF_ERROR(Record());
    return std::move(made_);
  }

 private:
  // A node whose result is its operand under another shape takes no step.
  static bool IsAlias(const ir::Node& node) { return node.op.def().info.keeps_order; }

  absl::Status Compile() {
    std::vector<ProgramCache::Request> requests;
    const auto& nodes = f_.nodes();
    program_of_.resize(nodes.size());
    std::vector<size_t> which;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (IsAlias(nodes[i])) {
        root_[nodes[i].first_out] = root_[nodes[i].in[0]];
        continue;
      }
      ir::Types out;
      for (uint16_t k = 0; k < nodes[i].outs; ++k) out.push_back(f_.type(nodes[i].first_out + k));
      requests.push_back({&nodes[i], f_.TypesOf(nodes[i].in), std::move(out), Label(nodes[i])});
      which.push_back(i);
    }
    ProgramCache::Counts counts;
    FORGE_ASSIGN_OR_RETURN(std::vector<ProgramRef> programs,
                           inputs_.programs.Get(requests, counts, options_.compile));
    for (size_t i = 0; i < which.size(); ++i) program_of_[which[i]] = programs[i];
    made_->statistics_.kernels_made = counts.made;
    made_->statistics_.kernels_reused = counts.reused;
    return absl::OkStatus();
  }

  uint32_t SlotOf(const BufferRef& buffer) {
    for (uint32_t i = 0; i < made_->slots_.size(); ++i)
      if (made_->slots_[i] == buffer) return i;
    made_->slots_.push_back(buffer);
    return static_cast<uint32_t>(made_->slots_.size() - 1);
  }

  absl::StatusOr<const VariablePlace*> FindVariable(const ir::Variable* v) const {
    for (const VariablePlaces* places : inputs_.variables)
      if (const auto at = places->find(v); at != places->end()) return at->second.get();
    return Internal("variable '{}' is not on the device", v->name);
  }

  absl::Status PlaceVariables() {
    for (const auto& read : f_.reads()) {
      FORGE_ASSIGN_OR_RETURN(const VariablePlace* place, FindVariable(read.variable));
      made_->places_[read.value] = {SlotOf(place->buffer), place->offset, place->bytes};
    }
    return absl::OkStatus();
  }

  // Lays values out in buffers of their own, which the host maps where they are not too large;
  // returns their places.
  absl::StatusOr<std::vector<Executable::Place>> Stage(std::span<const uint32_t> values,
                                                       Memory kind) {
    std::vector<Lifetime> lives;  // all at once
    for (uint32_t v : values) {
      FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(f_.type(v)));
      lives.push_back({bytes, 0, 0});
    }
    const ArenaPlan plan = inputs_.device->host_memory()
                               ? OneChunkEach(lives)  // so that a caller's memory may replace it
                               : PlanArena(lives, inputs_.device->largest_buffer());
    made_->statistics_.staging_bytes += plan.total_bytes();
    FORGE_RETURN_IF_ERROR(CheckLimit(made_->statistics_.staging_bytes));
    FORGE_ASSIGN_OR_RETURN(const auto slots, SlotsOf(plan, kind));
    return PlacesIn(plan, lives, slots);
  }

  // Before anything is allocated for them.
  absl::Status CheckLimit(uint64_t needed) const {
    if (needed <= options_.memory_limit) return absl::OkStatus();
    return ResourceExhausted(
        "the plan needs {} bytes besides the weights, but the memory limit leaves {}", needed,
        options_.memory_limit);
  }

  // A new buffer for each chunk; none of a mapped kind is larger than any buffer.
  absl::StatusOr<std::vector<uint32_t>> SlotsOf(const ArenaPlan& plan, Memory kind) {
    std::vector<uint32_t> slots;
    for (const uint64_t bytes : plan.chunk_bytes) {
      const Memory of = bytes > inputs_.device->largest_buffer() ? Memory::kDevice : kind;
      FORGE_ASSIGN_OR_RETURN(const BufferRef chunk,
                             inputs_.device->Allocate(of, std::max(bytes, kAlignment)));
      slots.push_back(SlotOf(chunk));
    }
    return slots;
  }

  static std::vector<Executable::Place> PlacesIn(const ArenaPlan& plan,
                                                 std::span<const Lifetime> lives,
                                                 std::span<const uint32_t> slots) {
    std::vector<Executable::Place> places;
    for (size_t i = 0; i < lives.size(); ++i)
      places.push_back({slots[plan.places[i].chunk], plan.places[i].offset, lives[i].bytes});
    return places;
  }

  absl::Status PlaceStaging() {
    std::vector<uint32_t> arguments, results;
    for (const auto& a : f_.arguments()) arguments.push_back(a.value);
    for (const auto& r : f_.results()) results.push_back(r.value);
    FORGE_ASSIGN_OR_RETURN(made_->upload_, Stage(arguments, Memory::kUpload));
    const bool in_place = inputs_.device->shares_memory();
    if (in_place)
      for (size_t i = 0; i < arguments.size(); ++i)
        made_->places_[arguments[i]] = made_->upload_[i];
    if (inputs_.results_into.empty()) {
      FORGE_ASSIGN_OR_RETURN(made_->readback_, Stage(results, Memory::kReadback));
    } else {
      for (const VariablePlace& p : inputs_.results_into)
        made_->readback_.push_back({SlotOf(p.buffer), p.offset, p.bytes});
    }
    if (in_place || !inputs_.results_into.empty()) PlaceResults(results);
    return absl::OkStatus();
  }

  // Where results are wanted, but for those that are arguments, variables or another result.
  void PlaceResults(std::span<const uint32_t> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const uint32_t root = root_[results[i]];
      if (InArena(root)) made_->places_[root] = made_->readback_[i];
    }
  }

  bool InArena(uint32_t value) const {
    return root_[value] == value && made_->places_[value].slot == Operand::kNoSlot &&
           f_.type(value);
  }

  // Steps are numbered by node; arguments live from before the first, results until after the last.
  std::vector<int> LastUses() const {
    std::vector<int> last(f_.value_count(), -1);
    for (size_t i = 0; i < f_.nodes().size(); ++i)
      for (uint32_t v : f_.nodes()[i].in)
        if (v != ir::kAbsent) last[root_[v]] = static_cast<int>(i) + 1;
    const int end = static_cast<int>(f_.nodes().size()) + 1;
    for (const auto& r : f_.results()) last[root_[r.value]] = end;
    for (const auto& u : f_.updates()) last[root_[u.value]] = end;
    return last;
  }

  // Results take the place of an operand without a later reader, where programs can: of one that
  // this plan computed, or of a variable that the result is stored to.
  void PlaceInPlace(std::vector<int>& last) {
    std::map<uint32_t, const ir::Variable*> stored;  // by value; the first where there are several
    for (const auto& u : f_.updates()) stored.emplace(root_[u.value], u.variable);
    for (size_t i = 0; i < f_.nodes().size(); ++i) {
      if (!program_of_[i]) continue;
      const ir::Node& node = f_.nodes()[i];
      for (const bool of_variable : {true, false}) {  // the better place first
        for (const auto& [operand, k] : program_of_[i]->overwritable()) {
          const uint32_t result = node.first_out + k, root = root_[node.in[operand]];
          // Laid out alike, too; one that nobody reads would leave the place free for another.
          if (!InArena(result) || last[result] < 0) continue;
          if (f_.type(node.in[operand]) != f_.type(result)) continue;
          if (!IsLastReader(i, root, last)) continue;
          const auto to = stored.find(result);
          const bool its = to != stored.end() && f_.VariableOf(root) == to->second;
          if (of_variable ? its : IsOwn(root)) TakePlace(result, root, last);
        }
      }
    }
  }

  // Does node `i` alone read the value, once, and no later one?
  bool IsLastReader(size_t i, uint32_t root, const std::vector<int>& last) const {
    const ir::Node& node = f_.nodes()[i];
    const auto reads = std::count_if(node.in.begin(), node.in.end(), [&](uint32_t v) {
      return v != ir::kAbsent && root_[v] == root;
    });
    return reads == 1 && last[root] == static_cast<int>(i) + 1;
  }
  // Is it a value that this plan computes into its arena?
  bool IsOwn(uint32_t root) const { return InArena(root) && FirstStep(root) != 0; }
  // The value `result` has the place of `root` from now on.
  void TakePlace(uint32_t result, uint32_t root, std::vector<int>& last) {
    last[root] = std::max(last[root], last[result]);
    for (uint32_t v = 0; v < f_.value_count(); ++v)
      if (root_[v] == result) root_[v] = root;
  }

  // Results of programs that update an operand take its place. Where the old value is read later,
  // or is not this plan's to change, the operand is copied there before.
  void PlaceUpdates(std::vector<int>& last) {
    const std::map<size_t, const ir::Variable*> stored = UpdatesOfVariables();
    for (size_t i = 0; i < f_.nodes().size(); ++i) {
      if (!program_of_[i] || !program_of_[i]->update()) continue;
      const ir::Node& node = f_.nodes()[i];
      const uint32_t root = root_[node.in[program_of_[i]->update()->operand]];
      const auto variable = stored.find(i);
      const bool its = variable != stored.end() && f_.VariableOf(root) == variable->second;
      if (options_.stepwise || !IsLastReader(i, root, last) || !(IsOwn(root) || its) ||
          !InArena(node.first_out)) {
        copied_first_.insert(i);
        continue;
      }
      TakePlace(node.first_out, root, last);
    }
  }

  // The variable that the result of a node, or what later updates make of it, is stored to at the
  // end, by node.
  std::map<size_t, const ir::Variable*> UpdatesOfVariables() const {
    std::map<size_t, const ir::Variable*> out;
    for (const auto& u : f_.updates()) {
      uint32_t value = root_[u.value];
      while (f_.origin(value).kind == ir::Function::Origin::kNode) {
        const size_t i = f_.origin(value).index;
        if (!program_of_[i] || !program_of_[i]->update()) break;
        // Stored to two variables: the first has it in place.
        if (!out.emplace(i, u.variable).second) break;
        value = root_[f_.nodes()[i].in[program_of_[i]->update()->operand]];
      }
    }
    return out;
  }

  int FirstStep(uint32_t value) const {
    const auto& origin = f_.origin(value);
    return origin.kind == ir::Function::Origin::kNode ? static_cast<int>(origin.index) + 1 : 0;
  }

  // All updates happen at once: those whose value is what another updated variable held before are
  // copied aside first.
  std::vector<size_t> UpdatesThatMove() const {
    std::vector<size_t> moved;
    for (size_t i = 0; i < f_.updates().size(); ++i) {
      const ir::Variable* from = f_.VariableOf(root_[f_.updates()[i].value]);
      if (from == nullptr || from == f_.updates()[i].variable) continue;
      for (const auto& other : f_.updates())
        if (other.variable == from) moved.push_back(i);
    }
    return moved;
  }

  absl::Status PlaceArena() {
    std::vector<int> last = LastUses();
    // An observer of steps sees operands after the step.
    if (!options_.stepwise) PlaceInPlace(last);
    PlaceUpdates(last);
    std::vector<Lifetime> lives;
    std::vector<uint32_t> values;
    for (uint32_t v = 0; v < f_.value_count(); ++v) {
      if (!InArena(v)) continue;
      FORGE_ASSIGN_OR_RETURN(uint64_t bytes, BytesOf(f_.type(v)));
      const int first = FirstStep(v);
      lives.push_back({bytes, first, std::max(first, last[v])});
      values.push_back(v);
    }
    std::vector<size_t> scratch_nodes;
    for (size_t i = 0; i < program_of_.size(); ++i) {
      if (!program_of_[i] || program_of_[i]->scratch_bytes() == 0) continue;
      lives.push_back(
          {program_of_[i]->scratch_bytes(), static_cast<int>(i) + 1, static_cast<int>(i) + 1});
      scratch_nodes.push_back(i);
    }
    const std::vector<size_t> moved = UpdatesThatMove();
    for (size_t u : moved) {
      FORGE_ASSIGN_OR_RETURN(uint64_t bytes, BytesOf(f_.type(f_.updates()[u].value)));
      const int end = static_cast<int>(f_.nodes().size()) + 1;
      lives.push_back({bytes, end, end + 1});
    }
    const ArenaPlan plan = PlanArena(lives, inputs_.device->largest_buffer());
    FORGE_RETURN_IF_ERROR(CheckLimit(plan.total_bytes() + made_->statistics_.staging_bytes));
    FORGE_ASSIGN_OR_RETURN(const auto slots, SlotsOf(plan, Memory::kDevice));
    const auto places = PlacesIn(plan, lives, slots);
    made_->statistics_.arena_bytes = plan.total_bytes();
    made_->statistics_.largest_live_set = plan.largest_live_set;
    auto place = places.begin();
    for (const uint32_t v : values) made_->places_[v] = *place++;
    for (const size_t node : scratch_nodes) scratch_[node] = *place++;
    for (const size_t u : moved) between_[u] = *place++;
    for (uint32_t v = 0; v < f_.value_count(); ++v) made_->places_[v] = made_->places_[root_[v]];
    return absl::OkStatus();
  }

  static Operand OperandAt(const Executable::Place& p, bool writes) {
    if (p.slot == Operand::kNoSlot) return {};
    return {p.slot, static_cast<int64_t>(p.offset), static_cast<int64_t>(p.bytes), writes};
  }

  void AddCopy(const Executable::Place& from, const Executable::Place& to, std::string label) {
    if (from.slot == to.slot && from.offset == to.offset) return;
    if (from.bytes == 0) return;
    Step step;
    step.operands = {OperandAt(from, false), OperandAt(to, true)};
    step.label = std::move(label);
    made_->infos_.push_back(
        {.label = step.label, .op = "copy", .kernel = "copy", .bytes_written = from.bytes});
    made_->step_nodes_.push_back(nullptr);
    steps_.push_back(std::move(step));
  }

  absl::Status AddSteps() {
    for (size_t i = 0; i < f_.arguments().size(); ++i)
      AddCopy(made_->upload_[i], made_->places_[f_.arguments()[i].value],
              "input " + f_.arguments()[i].name);
    AddNodes();
    for (size_t i = 0; i < f_.results().size(); ++i)
      AddCopy(made_->places_[f_.results()[i].value], made_->readback_[i],
              "output " + f_.results()[i].name);
    return AddUpdates();
  }

  absl::Status AddUpdates() {
    for (const auto& [i, place] : between_)
      AddCopy(made_->places_[f_.updates()[i].value], place,
              "state " + f_.updates()[i].variable->name);
    for (size_t i = 0; i < f_.updates().size(); ++i) {
      const auto& u = f_.updates()[i];
      const auto moved = between_.find(i);
      FORGE_ASSIGN_OR_RETURN(const VariablePlace* to, FindVariable(u.variable));
      AddCopy(moved == between_.end() ? made_->places_[u.value] : moved->second,
              {SlotOf(to->buffer), to->offset, to->bytes}, "state " + u.variable->name);
    }
    return absl::OkStatus();
  }

  void AddNodes() {
    for (size_t i = 0; i < f_.nodes().size(); ++i)
      if (program_of_[i]) AddNode(i);
  }

  void AddNode(size_t i) {
    const ir::Node& node = f_.nodes()[i];
    const auto update = program_of_[i]->update();
    if (copied_first_.contains(i))
      AddCopy(made_->places_[node.in[update->operand]], made_->places_[node.first_out],
              "keep " + Label(node));
    Step step;
    step.program = program_of_[i];
    ir::Types out;
    uint64_t bytes = 0;
    for (uint32_t v : node.in)
      step.operands.push_back(v == ir::kAbsent ? Operand{} : OperandAt(made_->places_[v], false));
    for (uint16_t k = 0; k < node.outs; ++k) {
      step.operands.push_back(OperandAt(made_->places_[node.first_out + k], true));
      out.push_back(f_.type(node.first_out + k));
      bytes += made_->places_[node.first_out + k].bytes;
    }
    if (auto it = scratch_.find(i); it != scratch_.end())
      step.operands.push_back(OperandAt(it->second, true));
    step.scalars.assign(step.program->scalars().begin(), step.program->scalars().end());
    step.label = Label(node);
    made_->infos_.push_back(
        {step.label, std::string(node.op.name()), std::string(step.program->kernel()),
         fmt::format("({}) -> {}", TypeList(f_.TypesOf(node.in)), TypeList(out)),
         step.program->dispatches(), step.program->seconds(),
         static_cast<int>(made_->programs_.size()), update ? update->bytes : bytes});
    made_->statistics_.steps += 1;
    made_->statistics_.dispatches += step.program->dispatches();
    made_->step_nodes_.push_back(&node);
    made_->programs_.push_back(step.program);
    steps_.push_back(std::move(step));
  }

  absl::Status Record() {
    std::vector<SlotSpec> slots;
    for (const BufferRef& b : made_->slots_) slots.push_back({b->size(), false});
    const size_t piece = options_.stepwise ? 1 : std::max<size_t>(1, steps_.size());
    for (size_t at = 0; at < steps_.size(); at += piece) {
      const std::span<const Step> part(steps_.data() + at, std::min(piece, steps_.size() - at));
      FORGE_ASSIGN_OR_RETURN(
          SegmentRef segment,
          inputs_.device->Record({part, slots, made_->step_symbols_, options_.timestamps}));
      made_->segments_.push_back(std::move(segment));
    }
    return absl::OkStatus();
  }

  const Executable::Inputs& inputs_;
  const Executable::Options& options_;
  const ir::Function& f_;
  std::unique_ptr<Executable> made_;
  std::vector<uint32_t> root_;                   // the value an alias stands for
  std::vector<ProgramRef> program_of_;           // by node; null for aliases
  std::map<size_t, Executable::Place> scratch_;  // by node
  std::set<size_t> copied_first_;                // nodes; see PlaceUpdates
  std::map<size_t, Executable::Place> between_;  // by update; see UpdatesThatMove
  std::vector<Step> steps_;
};

absl::StatusOr<std::unique_ptr<Executable>> Executable::Build(const Inputs& inputs,
                                                              const Options& options) {
  return ExecutableBuilder(inputs, options).Build();
}

}  // namespace forge
