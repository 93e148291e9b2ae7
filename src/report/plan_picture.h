#pragma once

#include <string>
#include <vector>

#include "cost/cost.h"
#include "log/log.h"
#include "plan/plan.h"
#include "report/profile.h"
#include "tune/best_plan.h"

// A planned graph as a report draws it: its steps with what they compute, its memory, and what the
// log has of its kernels. Pictures are bounded, however large the graph is.

namespace hone {

struct PictureBounds {
  size_t steps = 10'000;
  size_t nodes = 20'000;
  size_t needs = 40;       // edges into a step
  size_t buffers = 4'000;  // the largest, by bytes and time
  size_t moments = 1'000;  // of the curve of the load
  size_t points = 200;     // measured schedules of a kernel
  size_t all_points = 4'000;
};

struct GraphPicture {
  struct Node {
    std::string name, op, type, layout;  // of its first result; layout: empty if row-major
  };
  struct Step {
    std::string name;    // of the kernel or node
    std::string kernel;  // "dot_add_max"; empty: it is not a kernel
    std::vector<std::string> layers;
    int64_t schedule = -1;         // an index of schedules
    std::vector<uint32_t> needs;   // earlier steps whose results it reads
    std::vector<Node> nodes = {};  // that it computes
  };
  struct KernelSchedule {
    std::string hash, algorithm, text;
  };
  std::vector<Step> steps;  // in the order in which they run
  std::vector<KernelSchedule> schedules;
  size_t left_out_steps = 0, left_out_nodes = 0;
  size_t views = 0;  // nodes that share memory and take no step
};

struct MemoryPicture {
  struct Buffer {
    std::string name, type;
    int64_t begin = 0, end = 0;  // steps [begin, end)
    int64_t offset = 0, bytes = 0;
  };
  std::vector<Buffer> buffers;
  size_t left_out = 0;
  int64_t moments = 0;        // steps
  int64_t height = 0;         // of the arena
  int64_t bound = 0;          // no placement takes less
  std::vector<int64_t> load;  // bytes in use: the most in each of equal stretches of steps
  int64_t inputs = 0, outputs = 0, constants = 0;  // bytes beside it
};

// The records of the log about one kernel, in the order in which it was measured.
struct TriedKernel {
  std::string name;
  double launches = 0;  // in a run
  struct Point {
    double priced = 0, measured = 0;
    bool is_chosen = false;
    int64_t id = 0;  // of the record
  };
  std::vector<Point> points;
};
struct TuningPicture {
  std::vector<TriedKernel> kernels;
  size_t left_out = 0;  // points
  // After this many measurements, the sum of the times of the kernels' best schedules so far.
  std::vector<std::pair<int64_t, double>> progress;
  std::optional<KnownPlan> best;  // of the log
};

// `plan` may be empty: each node is a step then.
Result<GraphPicture> picture_of(const Graph& graph, const Plan& plan, const LayerNames& layers = {},
                                const PictureBounds& bounds = {});
// The picture of a complete plan and a graph whose sizes are numbers.
Result<MemoryPicture> memory_picture(const Graph& graph, const Plan& plan,
                                     const PictureBounds& bounds = {});
Result<TuningPicture> tuning_picture(const Graph& graph, const Plan& plan, const Target& target,
                                     const Cost& cost, const Log& log,
                                     const PictureBounds& bounds = {});

}  // namespace hone
