#pragma once

#include <span>
#include <string>
#include <vector>

#include "learn/network.h"
#include "learn/optimizers.h"

// The graphs that train a network and judge it.

namespace hone {

// A network for batches of some types: from `ports` to the loss and the metrics.
struct Forward {
  Graph graph = Graph();
  std::vector<Network::Port> ports = {};
  std::vector<std::string> metrics = {};

  std::vector<Network::Port> of(Network::Role role) const;
};
Result<Forward> trace(const Definition& definition, Network::Mode mode, const BatchTypes& batch);

// Gives inputs of the graph the names of the ports, but those that values of it have already.
void name_ports(Graph& graph, std::span<const Network::Port> ports);

struct UpdateOptions {
  const Optimizer* optimizer = nullptr;
  double clip_norm = 0;  // all gradients together are no longer than that; 0: as long as they are
  double average = 0;    // how much of a running mean of the weights stays in a step; 0: none
};

// The tensors that steps change, of one weight after the other: the weight, the states of the
// optimizer ("NAME.mean"), and the running mean ("NAME.average").
std::vector<NamedTensor> first_state(const Forward& forward, const UpdateOptions& options,
                                     uint64_t seed);

// The outputs of a step behind the new state.
struct StepOutputs {
  enum : size_t { is_finite, loss, norm, metrics };
};

struct NetworkStep {
  Graph gradients =
      Graph();  // from the ports of the network to loss, metrics, and the weights' gradients
  // From the state (donated), "rate", "step" (done so far), "seed" and the used tensors of the
  // batch, in the order of ports, to the next state and StepOutputs. If the loss or the length of
  // the gradients is not finite, the state stays as it is.
  Graph graph = Graph();
  size_t metrics = 0;

  std::vector<uint32_t> forward() const;  // the outputs of the graph that are loss and metrics
};
Result<NetworkStep> network_step(const Forward& forward, const UpdateOptions& options);

}  // namespace hone
