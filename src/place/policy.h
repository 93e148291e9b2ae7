#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "place/policy_view.h"
#include "place/weights_file.h"

// The learned policy of placement, in plain C++: nothing needs to be compiled to ask it. Its
// network hears of neighbours in both directions (GraphSAGE), then of segments of the order, each
// with the one before. All of that is scaled by what the whole graph looks like. Devices are
// described by the System. lab/models/placement_network.h has the same network as a graph, to train
// it.

namespace hone {

struct PolicyShape {
  static constexpr size_t kWidth = 24;    // of a node's state
  static constexpr size_t kHeads = 2;     // of attention
  static constexpr size_t kSegment = 64;  // rows that hear each other, and those before
  static constexpr size_t kRounds = 2;    // of GraphSAGE
  static constexpr size_t kLayers = 2;    // of attention
  static constexpr size_t kHidden = 16;   // of the head that decides step by step
  static constexpr size_t kStep = 8;      // features of a device in a step
  static constexpr float kOrder = 0.1F;   // of the most urgent node: a unit of the order's head
  static constexpr float kNever = -1e4F;  // is added where a node cannot be on a device
  static constexpr float kLeast = -10;    // logarithms below say no more to the second head
};

class PlacePolicy {
 public:
  // An error says which weight is missing, unknown, of other dims or not a number.
  static Result<PlacePolicy> make(std::span<const NamedTensor> weights);
  // The policy of a file's bytes. Damaged files, and those of something else, are refused by name.
  static Result<PlacePolicy> parse(std::span<const std::byte> file, std::string_view where);
  static Result<PlacePolicy> read(const std::filesystem::path& path);
  static Status write(const std::filesystem::path& path, std::span<const NamedTensor> weights);

  // The names of the weights with their dims, in order.
  static WeightShapes shapes();

  // For make(), which gives the same policy.
  std::vector<NamedTensor> weights() const;

  // The answer about a problem before anything is placed, by the rows and ranks of the view.
  struct Said {
    std::vector<float> once;    // [rows, ranks]: logarithms of probabilities, all nodes in one shot
    std::vector<float> order;   // [rows]: how much more urgent than the way to the end says
    std::vector<float> state;   // [rows, kWidth]: of nodes
    std::vector<float> node;    // [rows, kHidden], and
    std::vector<float> device;  // [ranks, kHidden]: for steps
  };
  Said look(const PolicyView& view) const;
  // Another way to compute it that says the same, such as a compiled program. Where it gives
  // nothing, plain code looks.
  using Look = std::function<std::optional<Said>(const PolicyView& view)>;
  void look_by(Look look) { look_ = std::move(look); }

  // Scores of the devices for a node, given the features of this step, [ranks, kStep].
  void score(const Said& said, size_t row, std::span<const float> features,
             std::span<float> scores) const;

 private:
  struct Weight {
    size_t rows = 0, columns = 0;
    std::vector<float> values;
  };
  const Weight& at(const std::string& name) const;
  std::vector<float> linear(const std::string& name, std::span<const float> x, bool bias) const;
  std::vector<float> norm(const std::string& name, std::span<const float> x) const;
  void hear_neighbours(const PolicyView& view, std::vector<float>& x) const;
  void modulate(std::vector<float>& x) const;
  void attend(const std::string& name, std::vector<float>& x) const;
  std::vector<float> devices(const PolicyView& view) const;

  std::map<std::string, Weight, std::less<>> weights_;
  Look look_;
};

// The policy that comes with hone; null: there is none, or its file does not fit this build.
const PlacePolicy* shipped_policy();

}  // namespace hone
