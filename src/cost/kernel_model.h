#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cost/features.h"
#include "cost/prices.h"
#include "cost/target_features.h"
#include "kernel/schedule.h"
#include "target/target.h"

// A learned model of kernels as plain data: by how much the analytic price is wrong for a schedule.
// Training makes it (learn/models/train_kernel_model.h), a file keeps it, FastModel (fast_model.h)
// computes it, and LearnedCost (learned_cost.h) is the price.

namespace hone {

// Networks with two hidden layers that saw different kernels. `x` counts as it is: what training
// has scaled is part of the first layer.
//   hidden1 = relu(x input + bias1), hidden2 = relu(hidden1 middle + bias2)
//   y = hidden2 output + bias3
// In a model of several processors, bias1 is that of a target whose features are at their means.
// model_on() adds what those of one target say.
struct ModelMember {
  std::vector<float> input, bias1;   // [kFeatures, width1], [width1]
  std::vector<float> middle, bias2;  // [width1, width2], [width2]
  std::vector<float> output;         // [width2]
  float bias3 = 0;
  std::vector<float> target;  // [kTargetFeatures, width1]; empty: the model is of one target
  bool operator==(const ModelMember&) const = default;
};

// How much slower than the best of all candidates the best of the first few by price is, at most:
// for nine of ten kernels. For all kernels (`kind` empty) or for one kind.
struct RegretBound {
  std::string kind;
  std::vector<double> slower;  // by kMeasuredCounts: 0.03 is 3 %
  bool operator==(const RegretBound&) const = default;
};
inline constexpr int64_t kMeasuredCounts[] = {1, 2, 3, 5, 8, 12, 16, 24};

// How far a model is to be trusted on a processor: KernelModel has what they mean.
struct ModelTrust {
  double reach = 0;
  std::vector<RegretBound> bounds;
  double lead = 1;
  std::map<std::string, double, std::less<>> levels;
  bool operator==(const ModelTrust&) const = default;
};

// A target that a model of several processors has learned from. Its networks are the common ones
// that have gone on with its own kernels: these alone say what no feature of a target does.
struct ModelTarget {
  std::string name;
  uint64_t fingerprint = 0;
  uint64_t core = 0;
  TargetFeatures features;  // all of them are numbers
  Prices prices;            // that are fitted to its kernels
  ModelTrust trust;
  std::vector<ModelMember> members;  // for it alone, so that none has ModelMember::target
  int64_t kernels = 0;  // of KernelModel::kernels: those of one target come after another's
  bool operator==(const ModelTarget&) const = default;
};

// The kernels of a processor that follow each other in KernelModel::kernels.
struct ProcessorKernels {
  size_t processor = 0;
  size_t count = 0;
  bool operator==(const ProcessorKernels&) const = default;
};

// The knowledge of a model of several processors about these.
struct ModelProcessors {
  std::vector<ModelTarget> targets;  // empty: the model is of one target
  TargetFeatures low, high, mean;    // of these; what a target does not say counts as the mean
  // On a processor that it has not seen, with coefficients that were measured there. KernelModel
  // has that with the default ones. Both are by networks that have left a processor out.
  ModelTrust fitted;
  bool operator==(const ModelProcessors&) const = default;
};

inline constexpr double kNoLead = 1;

struct KernelModel {
  // The target that it is for, and its data. A model of several processors is for all; it prices
  // kernels of a target once model_on() has made it a model of that.
  std::string target;  // its name
  uint64_t fingerprint = 0;
  uint64_t core = 0;  // core_fingerprint()
  ModelProcessors processors = {};
  int64_t threads = 1;
  std::vector<std::string> programs;  // whose kernels it has learned from, sorted
  Prices prices;                      // of the analytic price that it corrects
  // The networks.
  size_t width1 = 0, width2 = 0;
  std::vector<ModelMember> members;
  // The kernels that it has seen: how far each feature went, and how many kernels of a kind there
  // were by an algorithm ("conv gemm").
  std::array<float, kFeatures> low = {}, high = {};
  std::map<std::string, int64_t, std::less<>> seen;
  // The kernels, as their first features less the mean, for one of the deviation; and how far the
  // nearest may be.
  std::array<float, kKernelFeatures> mean = {}, deviation = {};
  std::vector<std::array<float, kKernelFeatures>> kernels;
  // For each kernel, the mean logarithm of the prices of its schedules when training was done. A
  // build that computes other features or another price than the one that trained is found out by
  // it.
  std::vector<float> priced;
  // The kernels that were measured on its own processor: the first one, and how many.
  size_t first_own = 0, own = std::numeric_limits<size_t>::max();
  // On a processor that it has not seen: the processors whose kernels they are, in order. Else it
  // is empty.
  std::vector<ProcessorKernels> abroad = {};
  double reach = 0;
  std::vector<RegretBound> bounds;
  // The lead by which another schedule has to be cheaper than the planner's: a share, with
  // which choices gained most of kernels that the networks had not seen. kNoLead: none gained, so
  // no schedule does, not even of a kernel that it has learned from.
  double lead = 0;
  // How many deviations of the networks a price lies above their mean: who takes the least of many
  // prices finds what networks are wrong about.
  double caution = 1;
  // For each kind, the logarithm of the factor of its kernels' prices. It makes no difference
  // between schedules: networks learn these, and are off by as much for most kernels of a kind.
  std::map<std::string, double, std::less<>> levels;

  bool operator==(const KernelModel&) const = default;

  bool is_of_several() const { return !processors.targets.empty(); }
  // The target that it has learned from with the same kind of core; null: there is none.
  const ModelTarget* find_target(const Target& of) const;
  // True if it has seen enough kernels of the kind by the algorithm.
  bool has_seen(std::string_view kind, Algorithm algorithm) const;
  double level(std::string_view kind) const;  // 0: there is none
  // How far a kernel is from the nearest one; the first kKernelFeatures count. On a processor that
  // it has not seen, from the nearest one of the second nearest processor: what a single one has
  // says nothing of how its times are elsewhere.
  double distance(const Features& of_kernel) const;
  // True if some of its kernels were measured on this processor.
  bool knows_processor() const { return own > 0; }
  // True if it is worth asking: its choices of schedules gained something where it had not seen the
  // kernels, or it has learned from some of this processor.
  bool gains() const { return knows_processor() || lead < kNoLead; }
  // True if it has learned from the kernel on this processor.
  bool has_learned_from(const Features& of_kernel) const;
  // The bound of the kind, or of all; null: there is none.
  const RegretBound* bound_of(std::string_view kind) const;

 private:
  double least_distance(const Features& of_kernel, size_t first, size_t last) const;
};
inline constexpr int64_t kLeastSeen = 5;  // kernels

uint64_t hash_of(const KernelModel& model);  // of all of it

// A safetensors file, all of which a checksum covers.
Status write_kernel_model(const std::filesystem::path& path, const KernelModel& model);
// Refuses what is damaged, and what was made for other features.
Result<KernelModel> read_kernel_model(const std::filesystem::path& path);
Result<KernelModel> parse_kernel_model(std::span<const std::byte> file, std::string_view where);
// If it is for another target, the error says why its answers do not count here.
Status check_is_for(const KernelModel& model, const Target& target);
// A model of several processors as one of this target. A target that it has learned from has its
// own networks. For another one features of the target become part of the first layers' biases, so
// that pricing takes no longer. Features outside of what was seen count as the nearest inside.
// Prices of a processor that it has not seen are those that were fitted there; null: the default
// ones. Another model is checked by check_is_for().
Result<KernelModel> model_on(KernelModel model, const Target& target,
                             const Prices* fitted = nullptr);

}  // namespace hone
