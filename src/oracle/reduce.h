#pragma once

#include <functional>

#include "oracle/differential.h"

namespace hone {

// Gives the verdict on a case. Whoever is asked may run it in another process.
using CaseRunner = std::function<Verdict(const DifferentialCase&)>;

// A case that fails as the given one does and that no single step makes smaller: a kernel alone on
// values that the reference computed, a part of the outputs, nodes replaced by their values,
// smaller dims, fewer decisions (the planner makes those that are left out), and simpler schedules.
DifferentialCase reduce(DifferentialCase failing, Verdict verdict, const Target& host,
                        const CaseRunner& run);

}  // namespace hone
