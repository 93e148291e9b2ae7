#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tensor/tensor.h"
#include "transport/collective.h"
#include "transport/transport.h"

// Random collectives, what they must give, and runs of them.

namespace hone::tested {

using Bytes = std::vector<std::byte>;

struct CollectiveCase {
  Collective collective;
  CollectiveSchedule schedule;
  DType dtype = DType::f32;
  std::vector<Bytes> inputs;  // of each member
  bool is_exact = true;       // sums are the same in each order

  std::string text() const;
};

// A group of 1 to `members`, on the first devices in any order.
CollectiveCase draw_case(Rng& rng, int32_t members);

// Compares the outputs of the members, element by element, with the definition of the collective.
// It knows nothing of schedules. An empty text: all is well.
std::string judge(const CollectiveCase& drawn, const std::vector<Bytes>& outputs);

// The outputs of all members, each run by a thread of its own over the transport of its device.
// Where that does not own the device, another process runs the member. A failure is an error of the
// test.
std::vector<Bytes> run_case(const CollectiveCase& drawn,
                            const std::function<Transport&(int32_t device)>& transport_of);

}  // namespace hone::tested
