#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tensor/type.h"

// The demands of ops on sizes that are not numbers yet.
//
// An op fails if it cannot prove that its sizes fit. It also says here what it could not prove:
// sizes that are open may be chosen so that it holds. Front ends listen, others do not.

namespace hone {

// A condition that holds for some values of the symbols, or for none.
struct Demand {
  enum class Kind : uint8_t {
    at_least,   // dims[0] >= dims[1]
    equal,      // dims[0] == dims[1]
    stretch,    // dims[0] is dims[1], or 1
    broadcast,  // both are equal, or one of them is 1
    multiple,   // dims[0] is a multiple of dims[1]
    elements,   // a tensor of these dims has no more elements than a type allows
  };
  Kind kind;
  Dims dims;
};

// Hears the demands of its thread while it lives. An inner listener hides the outer one.
class DemandListener {
 public:
  DemandListener();
  ~DemandListener();
  DemandListener(const DemandListener&) = delete;
  DemandListener& operator=(const DemandListener&) = delete;

  // The last one: whoever demands fails.
  const std::optional<Demand>& last() const { return last_; }

 private:
  friend void demand(const Demand& demand);

  DemandListener* outer_;
  std::optional<Demand> last_;
};

void demand(const Demand& demand);
void demand(Demand::Kind kind, Dim size, Dim wanted);
// Demands that the first dims which differ are equal; nothing if the ranks differ.
void demand_equal(std::span<const Dim> dims, std::span<const Dim> wanted);

}  // namespace hone
