#pragma once

#include <memory>

#include "base/team.h"
#include "target/target.h"

namespace hone {

inline const Target& host() {
  static const Target target = host_target().value();
  return target;
}

// As many threads as the host has cores, for all tests together.
inline std::shared_ptr<Team> team() {
  static const std::shared_ptr<Team> team = Team::create({.threads = host().cores}).value();
  return team;
}

}  // namespace hone
