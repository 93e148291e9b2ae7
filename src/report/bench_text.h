#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "measure/timing.h"
#include "target/target.h"
#include "tensor/dim.h"

// The results of `hone bench`, for people and as data.

namespace hone {

// How near a run can come to the memory's speed: it reads all of its weights.
struct WeightRoof {
  int64_t bytes = 0;            // of weights
  double bytes_per_second = 0;  // that memory delivers to the threads

  // The part of the memory's speed that a run uses.
  double part(double seconds) const {
    return static_cast<double>(bytes) / seconds / bytes_per_second;
  }
};

// Nothing: the model is more than one graph or has loops, its weights fit the last cache, or the
// target is a GPU. Tables of which a run takes rows do not count.
std::optional<WeightRoof> weight_roof(const Model& model, const Target& target, int64_t threads);

struct BenchReport {
  // The subject of the measurement.
  std::string model;
  int64_t threads = 1;
  std::string target;  // its name
  std::string isa;
  std::vector<std::pair<std::string, std::string>> inputs;  // names and types
  Bindings sizes;                                           // of open sizes

  int64_t warmup = 0;  // runs that did not count
  double first = 0;    // seconds to compile and to run once
  Timing timing;
  int64_t peak_bytes = 0;                  // of the process while it ran
  double load = -1;                        // of the machine, when it began; negative: not known
  int64_t cores = 0;                       // of the machine
  std::optional<WeightRoof> weights = {};  // too many for the caches

  struct Rival {
    std::string name;
    Timing timing;
    double ratio = 1;  // its time for one of the model's
    std::optional<Interval> interval;
    // The largest of the outputs, in parts of an output's largest number; none: not compared.
    std::optional<double> difference = {};
  };
  std::optional<Rival> rival;
  std::vector<Rival> slower_rivals = {};    // where all were measured
  std::vector<std::string> no_rivals = {};  // those that did not run, and why

  // One of several: the mean of a run, in seconds.
  struct Device {
    std::string name;
    int64_t rows = 0;  // of the batch; 0: they divide values
    double computing = 0;
    double moving = 0;   // copies of rows that do not lie side by side
    double waiting = 0;  // for the other devices
  };
  std::vector<Device> devices;  // empty: one device has all
};

// "threads 2, target avx512-2c, x f32[4, 784], N=4".
std::string bench_title(const BenchReport& report);
std::string bench_text(const BenchReport& report);
// Why the figures mean little; "" if they do not.
std::string bench_warning(const BenchReport& report);
// Times in seconds. `profile` is JSON, or empty.
std::string bench_json(const BenchReport& report, const std::string& profile = "");

// "min 11 ms, median 12 ms, p90 13 ms, p99 15 ms, of 83 runs".
std::string timing_text(const Timing& timing);

}  // namespace hone
