#pragma once

#include <map>
#include <string_view>

#include "target/system.h"

// The groups that links lie over: the rows of an axis, or the groups of a level.

namespace hone {

// An axis or a level as numbers.
struct Place {
  int64_t groups = 1;
  int64_t size = 1;    // devices of a group
  int64_t stride = 1;  // from one device of a group to the next
  bool has_star = false, has_bus = false;
  // The members of a group are this many devices each: switches of this place, or one device.
  const Place* inner = nullptr;
  int64_t first_switch = 0;  // those of all places are numbered one after another; two sides each

  bool has_switch() const { return has_star || has_bus; }
  int64_t members() const { return size / (inner == nullptr ? 1 : inner->size); }
  int64_t device(int64_t group, int64_t member) const {
    return group / stride * stride * size + group % stride + member * stride;
  }
};

class Places {
 public:
  // For a system whose devices, levels and axes are good.
  explicit Places(const System& system);
  Places(const Places&) = delete;

  const Place* find(std::string_view name) const;  // null: there is neither axis nor level
  // In the order in which their switches are numbered.
  const std::map<std::string_view, Place>& all() const { return places_; }

 private:
  std::map<std::string_view, Place> places_;
};

// How many links there are one by one.
int64_t link_count(const System& system, const Places& places);
// The links of a row between the members of one group, each counted once for both ways.
int64_t joints(const Links& links, int64_t members);

}  // namespace hone
