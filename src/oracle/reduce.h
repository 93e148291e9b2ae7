#pragma once

#include <functional>

#include "oracle/differential.h"

namespace hone {

// Gives the verdict on a case. Whoever is asked may run it in another process.
using CaseRunner = std::function<Verdict(const DifferentialCase&)>;

// A case that fails as the given one does and that no single step makes smaller. A step keeps one
// kernel on values that the reference computed, keeps a part of the outputs, or replaces nodes by
// their values. Other steps make dims smaller or schedules simpler, or leave decisions to the
// planner.
DifferentialCase reduce(DifferentialCase failing, Verdict verdict, const Target& host,
                        const CaseRunner& run);

}  // namespace hone
