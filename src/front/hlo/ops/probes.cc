#include "front/hlo/probes.h"

#include <algorithm>

#include "base/text.h"

namespace hone::hlo {
namespace {

constexpr std::string_view kProbe = "interpreter.probe";
constexpr int64_t kMostTrips = 4096;

const Attribute* attribute_of(const Instruction& instruction, std::string_view name) {
  for (const auto& [key, value] : instruction.attributes)
    if (key == name) return &value;
  return nullptr;
}

std::string_view id_of(const Instruction& instruction) {
  const Attribute* found = attribute_of(instruction, "probe_id");
  return found == nullptr ? "" : found->text;
}

// How many trips the checks of a function ask for.
int64_t trips_asked(const Region& region, std::string_view id) {
  int64_t most = 0;
  for (const Instruction& one : region.instructions) {
    if (one.name != "check.expect_serialized_eq" || id_of(one) != id) continue;
    const Attribute* trip = attribute_of(one, "iter");
    most = std::max(most, 1 + (trip == nullptr ? 0 : trip->integer));
  }
  return std::clamp(most, int64_t{0}, kMostTrips);
}

}  // namespace

LoopProbes::LoopProbes(Node& n, const Body& body) : n_(n) {
  if (n.importer().checks == nullptr) return;
  for (const Instruction& one : body.region->instructions) {
    if (one.name != kProbe || one.results.size() != 1) continue;
    const ValueType& type = one.results[0];
    const int64_t trips = trips_asked(n.importer().entry().body, id_of(one));
    if (trips > 0 && type.kind == ValueType::Kind::tensor && type.type.is_static())
      probes_.push_back({id_of(one), type.type, trips});
  }
}

// The number of the trip, then the values of each probe.
std::vector<Value> LoopProbes::initial() const {
  if (probes_.empty()) return {};
  Builder& b = n_.builder();
  std::vector<Value> states = {b.full(DType::i64, {}, 0)};
  for (const One& one : probes_) {
    Dims dims(one.type.dims().begin(), one.type.dims().end());
    dims.insert(dims.begin(), one.trips);
    states.push_back(cast(b.full(DType::i64, dims, 0), one.type.dtype()));
  }
  return states;
}

std::vector<Value> LoopProbes::after(Builder& inner, std::span<const Value> states) const {
  if (probes_.empty()) return {};
  std::vector<Value> made = {states[0] + 1.0};
  std::vector<Importer::Probed>& all = n_.importer().probed;
  for (size_t i = 0; i < probes_.size(); ++i) {
    const auto found = std::ranges::find_if(all, [&](const Importer::Probed& one) {
      return one.id == probes_[i].id && &one.value.builder() == &inner;
    });
    if (found == all.end() || found->value.type() != probes_[i].type)
      n_.refuse(bad_input("the loop does not probe '{}'", excerpt(probes_[i].id)));
    const Value before = states[i + 1];
    const Value here = compare("eq", iota(inner, DType::i64, before.dims(), 0),
                               broadcast(states[0], before.dims(), {}));
    made.push_back(select(here, unsqueeze(found->value, 0), before));
    all.erase(found);
  }
  return made;
}

void LoopProbes::end(std::span<const Value> states) const {
  for (size_t i = 0; i < probes_.size(); ++i)
    for (int64_t trip = 0; trip < probes_[i].trips; ++trip)
      n_.importer().probed.push_back(
          {probes_[i].id, squeeze(slice(states[i + 1], 0, trip, trip + 1), 0)});
}

std::vector<Value> map_probe(Node& n) {
  n.need(1);
  if (n.importer().checks != nullptr)
    n.importer().probed.push_back({id_of(n.instruction()), n.in()});
  return {n.in()};
}

std::vector<Value> map_expect_serialized_eq(Node& n) {
  n.need(1);
  int64_t trip = n.integer("iter", 0);
  for (const Importer::Probed& one : n.importer().probed) {
    if (one.id != id_of(n.instruction()) || &one.value.builder() != &n.builder() || trip-- > 0)
      continue;
    if (one.value.type() != n.in().type())
      n.refuse(bad_input("the value is {}, but {} was probed", n.in().type().to_string(),
                         one.value.type().to_string()));
    n.importer().add_check(n, {CheckRule::equal, 0, {}}, n.in(), one.value);
    return {};
  }
  n.refuse(bad_input("trip {} of '{}' was not probed", n.integer("iter", 0),
                     excerpt(id_of(n.instruction()))));
}

}  // namespace hone::hlo
