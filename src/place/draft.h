#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "place/placer.h"

// A placement in the making, node by node, with times as list schedulers reckon them: a message has
// its way to itself. The judge's timeline has the last word.

namespace hone {

class PlaceDraft {
 public:
  // `share`: of what comes and goes that is counted as held (PlaceUnit::bytes). `channels`: a
  // device sends one message at a time, and receives one.
  PlaceDraft(PlaceRun& run, double share, bool channels);

  // The seconds of the node on the device. None if its company has another device, or if the
  // device has no room for it.
  std::optional<double> seconds(uint32_t node, uint32_t device) const;
  // When the node may start at the soonest: its inputs are there, and the device is free; with
  // `gaps` between other nodes, too. Its makers are placed.
  double soonest(uint32_t node, uint32_t device, bool gaps) const;
  // When its inputs are on the device.
  double inputs_at(uint32_t node, uint32_t device) const;
  void put(uint32_t node, uint32_t device, double start);

  double room(uint32_t device) const { return room_[device]; }  // bytes
  double free_at(uint32_t device) const { return free_[device]; }
  bool is_ready(uint32_t node) const { return waits_[node] == 0; }
  bool is_put(uint32_t node) const { return placement_.device[node] != kNowhere; }
  uint32_t device_of(uint32_t node) const { return placement_.device[node]; }
  const std::vector<uint32_t>& ready() const { return ready_; }  // not put, in no order
  // The nodes in the order of their starts have falling priorities. All are put.
  DevicePlacement finished() const;

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Span {
    double start, end;
  };

  double arrival(uint32_t tensor, uint32_t device) const;  // were it sent now

  PlaceRun& run_;
  const PlaceProblem& problem_;
  double share_;
  bool channels_;
  uint32_t devices_;
  std::vector<std::vector<uint32_t>> inputs_, outputs_;  // tensors of each node
  std::vector<double> room_;                             // bytes, by device
  std::vector<uint32_t> unit_device_;
  std::vector<double> start_, end_, free_, sends_, receives_;
  std::vector<double> there_;             // by tensor and device: when it is there; negative: not
  std::vector<std::vector<Span>> spans_;  // of each device, by start
  std::vector<uint32_t> waits_, ready_;
  DevicePlacement placement_;
};

}  // namespace hone
