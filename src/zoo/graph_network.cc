#include "zoo/models.h"

// An encode-process-decode graph network (Battaglia et al. 2018; the sizes are those of
// MeshGraphNets, Pfaff et al. 2020): edges read their two nodes, nodes the sum of their edges.

namespace hone::zoo {
namespace {

constexpr int64_t kEdgesPerNode = 6;  // of a triangle mesh

Value mlp2(Net& net, std::string_view name, Value x, int64_t width, int64_t outputs) {
  Builder::Scope scope = net.scope(name);
  x = relu(linear(net, "0", x, width, {.gain = kHe}));
  x = relu(linear(net, "1", x, width, {.gain = kHe}));
  return linear(net, "2", x, outputs);
}

Value normalized_mlp(Net& net, std::string_view name, Value x, int64_t width) {
  Value y = mlp2(net, name, x, width, width);
  return layer_norm(net, fmt::format("{}/norm", name), y);
}

// Row i of the result is the sum of the rows r of x with index[r] == i.
Value segment_sum(Value x, Value index, Dim rows) {
  Value zeros = x.builder().full(x.dtype(), {rows, x.dim(-1)}, 0);
  return x.builder().op(Opcode::scatter, {zeros, index, x},
                        {{"window_dims", Ints{1}},
                         {"inserted_dims", Ints{0}},
                         {"index_map", Ints{0}},
                         {"index_vector_dim", int64_t{1}},
                         {"combine", "add"}});
}

}  // namespace

// `length` is the number of nodes of one mesh; a batch is one graph of disjoint meshes.
Outputs graph_network(Net& net) {
  int64_t width = net.pick(128, 16);
  Dim node_count = net.batch * net.length;
  Dim edge_count = node_count * kEdgesPerNode;
  Value nodes = net.b.parameter("nodes", DType::f32, {node_count, 12});
  Value edges = net.b.parameter("edges", DType::f32, {edge_count, 4});
  Value senders = net.b.parameter("senders", DType::i32, {edge_count});
  Value receivers = net.b.parameter("receivers", DType::i32, {edge_count});

  nodes = normalized_mlp(net, "encode/nodes", nodes, width);
  edges = normalized_mlp(net, "encode/edges", edges, width);
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("process", i);
    Value seen = concat({edges, take(nodes, senders), take(nodes, receivers)}, 1);
    Value message = normalized_mlp(net, "edges", seen, width);
    Value heard = concat({nodes, segment_sum(message, receivers, node_count)}, 1);
    nodes = nodes + normalized_mlp(net, "nodes", heard, width);
    edges = edges + message;
  }
  return {mlp2(net, "decode", nodes, width, 3).named("acceleration")};
}

}  // namespace hone::zoo
