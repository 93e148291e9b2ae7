#include "compile/spmd_programs.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cost/gpu_cost.h"
#include "cost/system_timeline.h"
#include "plan/collectives.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "program/devices.h"
#include "rewrite/passes.h"

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

// Elements of fewer bits than a byte may begin within one.
bool has_whole_bytes(Type type) { return type.static_elements() * bits(type.dtype()) % 8 == 0; }

Tensor part_of(const Tensor& all, Type type, int64_t number) {
  const int64_t count = type.static_elements(), begin = number * count;
  if (has_whole_bytes(type)) {
    const int64_t bytes = type.static_bytes();
    return Tensor::copy_of(
        type, all.bytes().subspan(static_cast<size_t>(number * bytes), static_cast<size_t>(bytes)));
  }
  if (is_real(type.dtype())) {
    std::vector<double> numbers(static_cast<size_t>(count));
    all.read_reals(begin, std::span(numbers));
    return Tensor::from_reals(type, numbers);
  }
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  all.read_integers(begin, numbers);
  return Tensor::from_integers(type, numbers);
}

// The output of each device, one behind the other.
Tensor joined(std::span<const std::vector<Tensor>> each, size_t output) {
  const Type own = each[0][output].type();
  const auto devices = static_cast<int64_t>(each.size());
  Dims dims(own.dims().begin(), own.dims().end());
  dims[0] = dims[0].value() * devices;
  const Type type = own.with_dims(dims);
  if (has_whole_bytes(own)) {
    Tensor all = Tensor::zeros(type);
    std::span<std::byte> to = all.mutable_bytes();
    for (const std::vector<Tensor>& device : each) {
      std::ranges::copy(device[output].bytes(), to.begin());
      to = to.subspan(device[output].bytes().size());
    }
    return all;
  }
  const bool are_real = is_real(own.dtype());
  std::vector<double> reals;
  std::vector<int64_t> integers;
  for (const std::vector<Tensor>& device : each)
    for (int64_t i = 0; i < own.static_elements(); ++i) {
      if (are_real)
        reals.push_back(device[output].real_at(i));
      else
        integers.push_back(device[output].integer_at(i));
    }
  return are_real ? Tensor::from_reals(type, reals) : Tensor::from_integers(type, integers);
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

std::vector<std::vector<Tensor>> tensors_of_each(std::span<const Tensor> all, const Graph& graph,
                                                 int64_t devices) {
  std::vector<std::vector<Tensor>> each(static_cast<size_t>(devices));
  for (int64_t device = 0; device < devices; ++device)
    for (size_t i = 0; i < all.size(); ++i) {
      const Type type = graph.type(graph.inputs()[i]);
      const bool is_whole = all[i].type() == type;
      each[static_cast<size_t>(device)].push_back(is_whole ? all[i]
                                                           : part_of(all[i], type, device));
    }
  return each;
}

std::vector<Tensor> tensors_of_all(std::span<const std::vector<Tensor>> each) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < each[0].size(); ++i)
    all.push_back(each[0][i].type().rank() == 0 ? each[0][i] : joined(each, i));
  return all;
}

namespace {

// The planner's plan with the schedules that are the best on the system, unless a better one is
// known. Whoever plans without it tells what is wrong.
decltype(CompileOptions::best_plan) scheduled_on(const System& system,
                                                 const CompileOptions& options) {
  return [&system, known = options.best_plan, cost = options.cost, heuristics = options.heuristics,
          cancel = options.cancel](const Graph& graph, const Target& target, int64_t threads) {
    std::optional<Plan> plan;
    if (known) plan = known(graph, target, threads);
    if (plan) return plan;
    Plan said;
    said.threads = threads;
    if (!add_best_schedules(graph, system, said).ok()) return plan;
    Result<Plan> made =
        complete(graph, std::move(said), target, cost ? *cost : *analytic_cost(target),
                 {.cancel = cancel, .heuristics = heuristics});
    if (made.ok()) plan = std::move(*made);
    return plan;
  };
}

Status add_program(const Graph& graph, const Target& target, CompileOptions options,
                   int64_t devices, DividedCode& made) {
  Compilation compilation(graph, target, std::move(options));
  HONE_TRY(check_no_deadlock(*HONE_TRY(compilation.program()), static_cast<int32_t>(devices)));
  return made.add(compilation);
}

}  // namespace

Result<DividedCode> spmd_programs(const Graph& graph, const Target& target, CompileOptions options,
                                  int64_t devices, std::span<const std::string> divided,
                                  const System* system, const GpuParts& gpus) {
  HONE_TRY(check_devices(graph, static_cast<int32_t>(devices)));
  HONE_TRY(check_names(graph, divided));
  DividedCode made = {.division = {.rows = devices}};
  std::vector<bool> differ;
  for (const ValueId input : graph.inputs()) differ.push_back(is_divided(graph, input, divided));
  if (gpus.empty() && system != nullptr && !options.find_rewrites)
    options.best_plan = scheduled_on(*system, options);
  const Graph named = gpus.empty() ? graph : HONE_TRY(name_values(graph));
  if (!gpus.empty()) {  // each sort has a plan of its own
    keep_order(named, options.plan);
    options.drops_unfit = true;
    options.best_plan = {};
  }
  std::map<std::string, uint32_t> known;  // by the name of the GPU
  for (int64_t i = 0; i < devices; ++i) {
    const GpuPart* const gpu = i < std::ssize(gpus) ? gpus[static_cast<size_t>(i)].get() : nullptr;
    const auto [at, is_new] = known.try_emplace(gpu == nullptr ? "" : gpu->target.name,
                                                static_cast<uint32_t>(made.images.size()));
    if (is_new)
      HONE_TRY(add_program(named, gpu == nullptr ? target : gpu->target, options_of(options, gpu),
                           devices, made));
    made.division.shares.push_back({i, 1, at->second});
  }
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
