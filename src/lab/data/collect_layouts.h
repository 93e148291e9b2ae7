#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/data/vary_plan.h"
#include "learn/data_set.h"
#include "tune/build_data_set.h"

// Programs by layouts for data sets: their files, and what is in them already.

namespace hone {

struct LayoutOptions {
  VaryOptions vary = {};
  size_t whole = 50;           // the number of first assignments that are run whole
  double whole_seconds = 0.5;  // for each, in turns with the default one
  bool renews = false;         // nothing is measured: files are made anew of what is known
  MeterOptions meter = {};     // of kernels
  // True if measuring has to end; half of the time is for kernels if there are whole runs.
  std::function<bool(double share)> is_over = [](double) { return false; };
};

// Tells whether the set's files of the program have all that is asked for.
Result<bool> has_layouts(const DataSet& set, const std::string& program,
                         const LayoutOptions& options);

// Draws assignments of layouts of a prepared graph. Measures their kernels that have no time yet,
// as long as there is time. Runs some assignments whole that have not been, and writes the
// program's two files. Whole runs of these files stay. Interrupted, it has written what it had, if
// that was more than kernels, which are in the log.
Result<CollectedPlans> collect_layouts(DataSet& set, const std::string& program, Graph graph,
                                       const Target& target, std::shared_ptr<const Cost> cost,
                                       MeasuredKernels& known, const LayoutOptions& options);

// The same as a task of build_data_set(), with its plans as assignments.
struct LayoutCollector final : ProgramCollector {
  size_t whole = 50;            // LayoutOptions
  const Cost* rival = nullptr;  // VaryOptions
  bool renews = false;          // LayoutOptions; programs that have all are renewed, too

  std::string_view what() const override { return "assignments of layouts"; }
  Result<bool> is_done(const DataSet& set, const std::string& program,
                       const BuildOptions& options) const override;
  Result<CollectedPlans> collect(DataSet& set, const std::string& program, Graph graph,
                                 const Target& target, MeasuredKernels& known,
                                 const BuildOptions& options,
                                 const std::function<bool(double share)>& is_over) const override;

 private:
  LayoutOptions layout_options(const BuildOptions& options) const;
};

}  // namespace hone
