#include "tensor/demand.h"

#include <algorithm>

namespace hone {
namespace {

thread_local DemandListener* listener = nullptr;

}  // namespace

DemandListener::DemandListener() : outer_(listener) { listener = this; }
DemandListener::~DemandListener() { listener = outer_; }

void demand(const Demand& demand) {
  if (listener != nullptr) listener->last_ = demand;
}

void demand(Demand::Kind kind, Dim size, Dim wanted) {
  if (listener != nullptr) demand({kind, {size, wanted}});
}

void demand_equal(std::span<const Dim> dims, std::span<const Dim> wanted) {
  if (dims.size() != wanted.size()) return;
  const auto [one, other] = std::ranges::mismatch(dims, wanted);
  if (one != dims.end()) demand(Demand::Kind::equal, *one, *other);
}

}  // namespace hone
