#include "lab/models/compiled_policy.h"

#include <algorithm>

#include "learn/network.h"

namespace hone {
namespace {

// The program with the sizes of its batch.
struct PolicyProgram {
  PlacementSizes sizes;
  std::vector<std::string> inputs;  // names of the batch, in the order of the program
  std::shared_ptr<const Runnable> code;
};

// The first `columns` of each of the first `rows`.
std::vector<float> part_of(const Tensor& tensor, size_t rows, size_t columns, size_t wide) {
  const std::span<const float> all = tensor.as<float>();
  std::vector<float> part;
  part.reserve(rows * columns);
  for (size_t r = 0; r < rows; ++r)
    part.insert(part.end(), all.begin() + static_cast<std::ptrdiff_t>(r * wide),
                all.begin() + static_cast<std::ptrdiff_t>(r * wide + columns));
  return part;
}

// None: the problem is larger than the program's batch, or the program failed.
std::optional<PlacePolicy::Said> looked(const PolicyProgram& program, const PolicyView& view) {
  const Result<Batch> batch = placement_view_batch(view, program.sizes);
  if (!batch.ok()) return std::nullopt;
  std::vector<Tensor> inputs;
  for (const std::string& name : program.inputs) inputs.push_back(batch->find(name)->second);
  const Result<std::vector<Tensor>> made = program.code->run(inputs);
  if (!made.ok()) return std::nullopt;
  const size_t rows = view.rows(), ranks = view.ranks();
  constexpr size_t kWide = PolicyShape::kWidth, kPair = PolicyShape::kHidden;
  PlacePolicy::Said said;
  said.once = part_of((*made)[0], rows, ranks, static_cast<size_t>(program.sizes.devices));
  said.order = part_of((*made)[1], rows, 1, 1);
  said.state = part_of((*made)[2], rows, kWide, kWide);
  said.node = part_of((*made)[3], rows, kPair, kPair);
  said.device = part_of((*made)[4], ranks, kPair, kPair);
  return said;
}

}  // namespace

PlacementSizes sizes_of(const PolicyView& view) {
  constexpr auto kSegment = static_cast<int64_t>(PolicyShape::kSegment);
  const auto rows = static_cast<int64_t>(view.rows());
  return {.nodes = std::max<int64_t>(2, (rows + kSegment - 1) / kSegment) * kSegment,
          .devices = static_cast<int64_t>(view.ranks()),
          .edges = std::max<int64_t>(std::ssize(view.sources), 1),
          .plans = 0};
}

Result<PlacePolicy> compiled_policy(const PlacePolicy& policy, const PolicyView& like,
                                    const PlacementSizes& sizes, const CompileOptions& compile) {
  const Batch batch = HONE_TRY(placement_view_batch(like, sizes));
  const std::vector<NamedTensor> weights = policy.weights();
  const BatchTypes types = types_of(batch);
  Builder b("policy");
  Network net(b, Network::Mode::evaluation, types, &weights);
  const PlacementSaid said = placement_said(net);
  Graph graph = HONE_TRY(b.finish({said.once, said.order, said.state, said.node, said.device}));
  auto program = std::make_shared<PolicyProgram>();
  program->sizes = sizes;
  for (const Network::Port& port : net.ports()) program->inputs.push_back(port.name);
  Compilation code(std::move(graph), HONE_TRY(host_target()), compile);
  program->code = HONE_TRY(code.executable());
  PlacePolicy compiled = policy;
  compiled.look_by([program](const PolicyView& view) { return looked(*program, view); });
  return compiled;
}

}  // namespace hone
