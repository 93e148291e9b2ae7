#include "session/deployed.h"

#include <algorithm>

#include "base/text.h"
#include "compile/divided_code.h"
#include "compile/segment_tree.h"
#include "ir/summary.h"
#include "session/sizes.h"
#include "session/source.h"
#include "session/unknown_kernels.h"

namespace hone {

namespace {

std::vector<image::Port> ports_of(std::span<const ModelValue> values) {
  std::vector<image::Port> ports;
  for (const ModelValue& value : values) ports.push_back({value.name, value.type});
  return ports;
}

// A size that no input has is never known.
Status check_sizes_follow(const Graph& graph, const Labels& labels) {
  for (Symbol symbol : graph.symbols()) {
    const auto has = [&](ValueId input) {
      return std::ranges::any_of(graph.type(input).dims(), [&](Dim dim) {
        const std::vector<Symbol> symbols = dim.symbols();
        return std::ranges::find(symbols, symbol) != symbols.end();
      });
    };
    if (std::ranges::any_of(graph.inputs(), has)) continue;
    return unsupported("no input tells the size '{}'", symbol.name())
        .with_hint(fmt::format("a number for it: {}",
                               size_text({{symbol.name(), Dim(symbol.min())}}, labels)));
  }
  return {};
}

// Numbers for all that is open.
std::string numbers_for(const Graph& graph, const Labels& labels) {
  return size_text(smallest_bindings(graph, {}), labels);
}

// For a model with a part that cannot be typed: numbers for its open sizes, if it can be typed
// then.
std::string way_out(const Model& model, const Labels& labels) {
  std::string text;
  const Bindings open = smallest_sizes(model, {});
  const Result<Model> typed = specialize(model, open);
  if (!open.empty() && typed.ok() && first_deferred(*typed) == nullptr) {
    std::vector<std::string> choice;
    for (const auto& [name, size] : open)
      choice.push_back(fmt::format("{}={}", name, size.to_string()));
    text = fmt::format("numbers for open sizes: {}", size_text(open, labels));
    if (!labels.choices.empty())
      text += fmt::format(", or {} {} once for each choice", labels.choices, join(choice, ","));
    text += "; ";
  }
  return text + "'hone run' of the model itself compiles what it meets";
}

}  // namespace

Result<DeployedGraph> deployed_graph(const Graph& graph, uint32_t unit, const Target& target,
                                     CompileOptions options, const Labels& labels) {
  DeployedGraph made;
  made.is_open = !graph.is_static();
  made.unit = unit;
  HONE_TRY(check_sizes_follow(graph, labels));
  Compilation compilation(graph, target, std::move(options));
  if (!made.is_open) {
    made.open.image = *HONE_TRY(compilation.image());
  } else {
    Result<OpenImage> open = compilation.open_image();
    if (!open.ok() && open.error().code() == ErrorCode::unsupported)
      return std::move(open)
          .error()
          .within(fmt::format("'{}', for sizes that are open", excerpt(graph.name())))
          .with_hint(fmt::format("code for one size: {}; 'hone run' of the model itself compiles "
                                 "what it meets",
                                 numbers_for(graph, labels)));
    made.open = HONE_TRY(std::move(open));
  }
  if (target.gpu) {
    made.capability = target.gpu->capability;
    made.share = HONE_TRY(gpu_share(compilation));
    made.gpu.assign(compilation.gpu_kernels().begin(), compilation.gpu_kernels().end());
  }
  made.plan = print(*HONE_TRY(compilation.plan()));
  made.prices = compilation.cost().name();
  made.unknown = HONE_TRY(unknown_kernels_text(compilation));
  return made;
}

Result<DeployedDevices> deployed_devices(const Graph& open, const Graph& graph,
                                         const DeviceOptions& devices, const Target& target,
                                         const CompileOptions& options) {
  const BatchInputs batch = HONE_TRY(batch_inputs(open, graph.input_types(), devices.batch));
  DividedCode code = HONE_TRY(
      divided_code(graph, batch, std::ssize(devices.names), target, options, devices.system.get()));
  DeployedDevices made = {.division = std::move(code.division), .graphs = {}};
  for (size_t i = 0; i < code.images.size(); ++i) {
    DeployedGraph& one = made.graphs.emplace_back();
    one.open.image = std::move(code.images[i]);
    one.plan = std::move(code.plans[i]);
    one.prices = code.prices;
    one.unit = static_cast<uint32_t>(i);
  }
  return made;
}

Result<HonecModel> deployed_model(const Model& open, const Model& bound, const Labels& labels) {
  HonecModel model = {open.name, ports_of(open.inputs), ports_of(open.outputs)};
  if (const Graph* graph = single_graph(bound)) {
    model.name = graph->name();
    return model;
  }
  Result<SegmentTree> tree = segment_tree(bound);
  if (!tree.ok()) return std::move(tree).error().with_hint(way_out(bound, labels));
  model.segments = *std::move(tree);
  return model;
}

}  // namespace hone
