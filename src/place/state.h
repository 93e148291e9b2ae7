#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/placer.h"

// A placement that changes step by step, with its value.

namespace hone {

struct PlaceMove {
  uint32_t unit;
  uint32_t device;
};

class PlaceState {
 public:
  // The placement fits. The run outlives the state.
  PlaceState(PlaceRun& run, const DevicePlacement& start);

  double value() const { return value_; }  // of the goal; kCannotRun: no room
  // Walks compare this: the value, and a little of what is not seen in it yet.
  double rank() const { return rank_; }
  uint32_t device_of(uint32_t unit) const { return device_of_unit_[unit]; }
  DevicePlacement placement() const;

  // Moves units, each once; undo() takes that back.
  void apply(std::span<const PlaceMove> moves);
  // Gives a node the priority of another one, and that one its own. Only of goals that ask for it.
  void swap_priorities(uint32_t a, uint32_t b);
  void undo();

 private:
  void move(uint32_t unit, uint32_t device);
  void find_value();
  void move_uses(uint32_t tensor, uint32_t from, uint32_t to, uint32_t users, bool maker);
  double moved(uint32_t tensor, uint32_t device) const;

  PlaceRun& run_;
  const PlaceProblem& problem_;
  uint32_t devices_;
  std::vector<uint32_t> device_of_unit_;
  std::vector<int32_t> priority_;
  // Kept up to date for the load: by tensor and device the users there, and who makes it.
  struct Use {
    uint32_t tensor, users;
    bool makes;
  };
  std::vector<std::vector<Use>> uses_;  // of each unit
  std::vector<uint32_t> users_, maker_device_;
  std::vector<double> seconds_, bytes_, held_;  // by device
  double value_ = 0, rank_ = 0;
  // For undo().
  std::vector<PlaceMove> before_;
  std::vector<uint32_t> swapped_;
  double value_before_ = 0, rank_before_ = 0;
};

}  // namespace hone
