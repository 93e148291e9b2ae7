#pragma once

#include <span>
#include <vector>

#include "cost/kernel_model.h"

namespace hone {

// The networks of a model in plain C++, in the order in which they are computed: the first layers
// of all members lie side by side.
class FastModel {
 public:
  explicit FastModel(const KernelModel& model);

  struct Said {
    float mean = 0;       // log(time / analytic price)
    float deviation = 0;  // of the members
  };
  // Features outside of what was seen count as the nearest inside.
  void run(std::span<const Features> of, std::span<Said> said) const;
  // The mean of Said, as each member says it.
  std::vector<double> each(const Features& of) const;
  // True if all features lie within what was seen.
  bool is_inside(const Features& features) const;

 private:
  static constexpr size_t kAtOnce = 8;  // schedules
  // The last is what members say, those of a schedule side by side; null: nobody asks.
  void run_some(const Features* of, size_t count, Said* said, float* by_member) const;

  const size_t members_, width1_, width2_;
  std::array<float, kFeatures> low_, high_;
  std::vector<uint8_t> seen_;          // the features that have weights
  std::vector<float> input_, bias1_;   // [seen][members x width1], [members x width1]
  std::vector<float> middle_, bias2_;  // [members][width1][width2], [members x width2]
  std::vector<float> output_, bias3_;  // [members x width2], [members]
};

}  // namespace hone
