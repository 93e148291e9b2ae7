#pragma once

#include <string>
#include <vector>

#include "runtime/mesh_model.h"
#include "shard/partition.h"
#include "shard/shard_subject.h"

// How the devices of a mesh divide the tensors of a graph, for what runs it.

namespace hone {

// `graph` is the one that was divided: names are its own.
MeshDivision mesh_division(const Graph& graph, const ShardSubject& subject,
                           const Partition& partition);

// How the devices of the mesh divide one tensor.
MeshPort port_of(image::Port whole, const ShardLayout& layout, const Mesh& mesh);

// The inputs of a partition that differ from device to device, by name.
std::vector<std::string> divided_inputs(const Partition& partition);

}  // namespace hone
