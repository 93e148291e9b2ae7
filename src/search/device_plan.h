#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "plan/plan.h"

// A plan, and who computes what of it: a text behind the plan, for a System. A plan is of one
// device and says nothing of others; docs/formats/plan-text.md has the form of both.

namespace hone {

// Decisions of steps, by "@kernel" or "%node"; a node goes by its first result.
struct StepDevices {
  std::map<std::string, int32_t> device;    // who computes it
  std::map<std::string, int32_t> priority;  // what a free device takes first of what is ready

  bool operator==(const StepDevices&) const = default;
};

struct DevicePlan {
  PlacedPlan plan;
  StepDevices steps;
  PlanLines lines = {};  // "device @k0" -> 12

  // The error with the place of its entry.
  Error placed(Error error) const;
};

// True if a text has devices behind a plan.
bool has_devices(std::string_view text);

std::string print(const Plan& plan, const StepDevices& steps);
// Inverse of print. Errors have their place as "file:line:column".
Result<DevicePlan> parse_device_plan(std::string_view text, std::string_view file);

}  // namespace hone
