#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compile/divided_code.h"

namespace hone {

// A graph with collectives: each device runs all of it, on tensors of its own. Whoever runs it
// gives and takes those of all devices at once, one behind the other along dim 0.
//
// `divided` names the inputs that differ from device to device; the others are the same for all.
// None is named: all that have a dim differ. Outputs without a dim are the first device's.

// The types that inputs of all devices have; a graph without nodes.
Result<Graph> spmd_signature(const Graph& graph, int64_t devices,
                             std::span<const std::string> divided);
// Tensors of all devices, as the tensors that each of them has, of the types of the graph's inputs;
// and the other way about.
std::vector<std::vector<Tensor>> tensors_of_each(std::span<const Tensor> all, const Graph& graph,
                                                 int64_t devices);
std::vector<Tensor> tensors_of_all(std::span<const std::vector<Tensor>> each);
// One program for all devices of a sort, of which each has one row of as many. Static graphs only.
// Error: it is for another number of devices, or its devices would wait for each other for ever.
//
// The system has the devices. Its timeline schedules collectives where neither a plan nor rewrites
// are known; null: their sizes do.
Result<DividedCode> spmd_programs(const Graph& graph, const Target& target, CompileOptions options,
                                  int64_t devices, std::span<const std::string> divided,
                                  const System* system = nullptr, const GpuParts& gpus = {});

}  // namespace hone
