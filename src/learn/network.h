#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/npz.h"
#include "ir/functional.h"

// Networks: graphs whose weights have names and numbers to begin with. Layers (layers.h) are
// functions on a Network and Values:
//
//   Objective digits(Network& net) {
//     Value x = relu(linear(net, "hidden", net.input("image"), 64));
//     Value loss = cross_entropy(linear(net, "scores", x, 10), net.input("label"));
//     return {loss};
//   }

namespace hone {

// Named tensors that one step reads. Their types decide the types of a network's inputs.
using Batch = std::map<std::string, Tensor, std::less<>>;
using BatchTypes = std::vector<std::pair<std::string, Type>>;
BatchTypes types_of(const Batch& batch);

// The numbers that a weight begins with. They follow from the seed and the weight's name alone.
struct Initializer {
  enum class Kind : uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double scale = 0;  // the number; the bound on both sides; the deviation

  static Initializer constant(double value) { return {Kind::constant, value}; }
  static Initializer uniform(double bound) { return {Kind::uniform, bound}; }
  static Initializer normal(double deviation) { return {Kind::normal, deviation}; }
  static Initializer he(int64_t inputs);                       // He et al. 2015, in front of a relu
  static Initializer glorot(int64_t inputs, int64_t outputs);  // Glorot and Bengio 2010
};
Tensor initial_tensor(const Initializer& initializer, Type type, std::string_view name,
                      uint64_t seed);

// A graph in the making, and what its parameters are.
class Network {
 public:
  enum class Mode : uint8_t { training, evaluation };
  enum class Role : uint8_t { input, weight, seed, step };
  struct Port {
    Role role = Role::input;
    std::string name;
    Type type;
    Initializer initializer = {};  // of a weight
  };

  // The batch's types outlive it, and so do the weights: their tensors if they are to be constants
  // of the graph, null if they are to be parameters.
  Network(Builder& builder, Mode mode, const BatchTypes& batch,
          const std::vector<NamedTensor>* weights = nullptr)
      : b(builder), mode_(mode), batch_(batch), weights_(weights) {}

  Builder& b;
  bool is_training() const { return mode_ == Mode::training; }

  // A tensor of the batch.
  Value input(std::string_view name);
  // A tensor that training changes. Who asks for a name again, gets the same one.
  Value weight(std::string_view name, const Dims& dims, const Initializer& initializer,
               DType dtype = DType::f32);
  // Random u32: others in each step and each place, the same again in a step that is repeated.
  Value random_bits(const Dims& dims);

  // Names inside get this prefix: "layer3/"; nests.
  [[nodiscard]] Builder::Scope scope(std::string_view name) { return b.scope(name); }

  // Gives a result a name below the scope, for people who look for it. A name that is taken gets a
  // number: "y_2".
  Value named(Value value, std::string_view name);

  const std::vector<Port>& ports() const { return ports_; }  // the parameters, in order

 private:
  Value port(Role role, std::string_view name, Type type, const Initializer& initializer = {});

  const Mode mode_;
  const BatchTypes& batch_;
  const std::vector<NamedTensor>* weights_;
  std::vector<Port> ports_;
  std::vector<Value> values_;    // by port
  std::set<std::string> names_;  // that named() gave
  uint64_t random_places_ = 0;
};

// The objective of a network: a real scalar to make small, and scalars to watch.
struct Objective {
  Value loss;
  std::vector<std::pair<std::string, Value>> metrics = {};
};
// Builds the graph of one batch. It is called again for batches of other types.
using Definition = std::function<Objective(Network&)>;

}  // namespace hone
