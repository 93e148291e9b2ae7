#include <algorithm>

#include "kernel/algorithms/algorithm.h"

namespace hone {

#define HONE_ALGORITHM(member, ...) const AlgorithmDef& algorithm_##member();
#include "kernel/algorithms.def"

const AlgorithmDef& def_of(Algorithm algorithm) {
  switch (algorithm) {
#define HONE_ALGORITHM(member, ...) \
  case Algorithm::member: return algorithm_##member();
#include "kernel/algorithms.def"
  }
  return algorithm_generic();
}

std::optional<PreparedInput> prepared_input(const KernelBody& body, const Schedule& schedule) {
  return def_of(schedule.algorithm()).prepared(body, schedule);
}

Status check_schedule(const KernelBody& body, const KernelFacts& facts, const Schedule& schedule,
                      const Target& target) {
  return def_of(schedule.algorithm()).check({body, facts, target}, schedule);
}

Status check_schedule(const KernelBody& body, const Schedule& schedule, const Target& target) {
  return check_schedule(body, KernelFacts(body), schedule, target);
}

}  // namespace hone
