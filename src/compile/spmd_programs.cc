#include "compile/spmd_programs.h"

#include <algorithm>

#include "base/text.h"
#include "plan/collectives.h"
#include "program/devices.h"

namespace hone {
namespace {

bool is_divided(const Graph& graph, ValueId input, std::span<const std::string> divided) {
  if (graph.type(input).rank() == 0) return false;
  return divided.empty() || std::ranges::find(divided, graph.name(input)) != divided.end();
}

Status check_names(const Graph& graph, std::span<const std::string> divided) {
  for (const std::string& name : divided) {
    const auto is_it = [&](ValueId input) { return graph.name(input) == name; };
    const auto found = std::ranges::find_if(graph.inputs(), is_it);
    if (found == graph.inputs().end()) return usage_error("no input is called '{}'", excerpt(name));
    if (graph.type(*found).rank() == 0)
      return usage_error("'{}' has no dim along which devices could have different ones",
                         excerpt(name));
  }
  return {};
}

Result<Type> of_all(Type type, int64_t devices) {
  Dims dims(type.dims().begin(), type.dims().end());
  if (!dims[0].is_static())
    return unsupported("dim 0 is open, of {} on several devices", type.to_string());
  const int64_t size = dims[0].value();
  if (size > kMaxElements / devices)
    return over_limit("{} times {} on {} devices", size, type.to_string(), devices);
  dims[0] = size * devices;
  return Type::make(type.dtype(), dims);
}

}  // namespace

Result<Graph> spmd_signature(const Graph& graph, int64_t devices,
                             std::span<const std::string> divided) {
  HONE_TRY(check_devices(graph, static_cast<int32_t>(devices)));
  HONE_TRY(check_names(graph, divided));
  Graph signature(std::string(graph.name()));
  for (const ValueId input : graph.inputs()) {
    Type type = graph.type(input);
    if (is_divided(graph, input, divided)) type = HONE_TRY(of_all(type, devices));
    signature.add_parameter(type, graph.name(input));
  }
  return signature;
}

Result<DividedCode> spmd_programs(const Graph& graph, const Target& target, CompileOptions options,
                                  int64_t devices, std::span<const std::string> divided) {
  HONE_TRY(check_devices(graph, static_cast<int32_t>(devices)));
  HONE_TRY(check_names(graph, divided));
  DividedCode made = {.division = {.rows = devices}};
  for (int64_t i = 0; i < devices; ++i) made.division.shares.push_back({i, 1, 0});
  std::vector<bool> differ;
  for (const ValueId input : graph.inputs()) differ.push_back(is_divided(graph, input, divided));
  Compilation compilation(graph, target, std::move(options));
  HONE_TRY(check_no_deadlock(*HONE_TRY(compilation.program()), static_cast<int32_t>(devices)));
  made.images.push_back(*HONE_TRY(compilation.image()));
  made.plans.push_back(print(*HONE_TRY(compilation.plan())));
  made.prices = compilation.cost().name();
  const Image& image = made.images.front();
  for (size_t i = 0; i < image.inputs.size(); ++i) {
    const image::Port& port = image.inputs[i];
    const Type type = differ[i] ? HONE_TRY(of_all(port.type, devices)) : port.type;
    made.inputs.push_back({port.name, type});
    made.division.inputs.push_back(differ[i] ? 0 : kWhole);
  }
  for (const image::Port& port : image.outputs) {
    const bool has_dim = port.type.rank() > 0;
    const Type type = has_dim ? HONE_TRY(of_all(port.type, devices)) : port.type;
    made.outputs.push_back({port.name, type});
    made.division.outputs.push_back(has_dim ? 0 : kWhole);
  }
  return made;
}

}  // namespace hone
