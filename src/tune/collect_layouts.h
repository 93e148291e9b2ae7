#pragma once

#include <functional>
#include <string>
#include <vector>

#include "learn/data_set.h"
#include "tune/vary_plan.h"

// Programs by layouts for data sets: their files, and what is in them already.

namespace hone {

struct LayoutOptions {
  VaryOptions vary = {};
  size_t whole = 50;           // so many assignments, the first ones, are run whole
  double whole_seconds = 0.5;  // for each, in turns with the default one
  bool renews = false;         // nothing is measured: files are made anew of what is known
  MeterOptions meter = {};     // of kernels
  // Whether measuring has to end; half of the time is for kernels if there are whole runs.
  std::function<bool(double share)> is_over = [](double) { return false; };
};

struct CollectedLayouts {
  size_t assignments = 0, kernels = 0;
  size_t whole = 0;  // runs, now
  std::vector<double> errors =
      {};                // of composed times: composed / whole, by whole run of the files
  bool is_done = false;  // all that was asked for is known
};

// Whether the set's files of the program have all that is asked for.
Result<bool> has_layouts(const DataSet& set, const std::string& program,
                         const LayoutOptions& options);

// Draws assignments of layouts of a prepared graph, measures what is not known of their kernels as
// far as there is time, runs some whole that have not been, and writes the program's two files.
// Whole runs of these files stay. Interrupted, it has written what it had, if that was more than
// kernels, which are in the log.
Result<CollectedLayouts> collect_layouts(DataSet& set, const std::string& program, Graph graph,
                                         const Target& target, std::shared_ptr<const Cost> cost,
                                         MeasuredKernels& known, const LayoutOptions& options);

}  // namespace hone
