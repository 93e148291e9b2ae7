#pragma once

#include <array>
#include <string>
#include <vector>

#include "oracle/conformance.h"

namespace hone {

struct ConformanceRow {
  ConformanceCase which;
  CaseOutcome outcome;
};

struct ConformanceReport {
  CaseMode mode = CaseMode::plain;
  GivenTolerance tolerance;
  std::vector<ConformanceRow> rows;
};

using ClassCounts = std::array<int64_t, std::size(kCaseClasses)>;  // by CaseClass
ClassCounts class_counts(const ConformanceReport& report);

// For people: counts by set, each wrong and crashed case, the reasons of unsupported ones. With
// all: a line for every case.
std::string conformance_text(const ConformanceReport& report, bool all);
// {"mode", "summary": {"pass": 1, ...}, "cases": [...]}
std::string conformance_json(const ConformanceReport& report);
// The same facts as in the text without anything that differs from run to run.
std::string conformance_markdown(const ConformanceReport& report);

}  // namespace hone
