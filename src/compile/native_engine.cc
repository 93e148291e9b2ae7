#include "compile/native_engine.h"

#include <algorithm>

#include "runtime/load_elsewhere.h"

namespace hone {

namespace {

bool is_longer(Type input, Type output) {
  if (input.dtype() != output.dtype() || input.rank() != output.rank()) return false;
  int longer = 0;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const Dim before = input.dim(axis), after = output.dim(axis);
    if (before == after) continue;
    const std::vector<Symbol> own = before.symbols(), added = (after - before).symbols();
    const bool is_sum = std::ranges::none_of(
        added, [&](Symbol symbol) { return std::ranges::find(own, symbol) != own.end(); });
    if (own.empty() || !is_sum || !provably_le(before, after)) return false;
    ++longer;
  }
  return longer == 1;
}

void add_graphs(const Body& body, bool is_in_loop, std::set<const Graph*>& found);

void add_graphs(const std::vector<Segment>& segments, bool is_in_loop,
                std::set<const Graph*>& found) {
  for (const Segment& segment : segments) {
    if (const auto* graph = std::get_if<GraphSegment>(&segment.kind)) {
      if (is_in_loop) found.insert(graph->graph.get());
    } else if (const auto* branch = std::get_if<IfSegment>(&segment.kind)) {
      add_graphs(branch->on_true, is_in_loop, found);
      add_graphs(branch->on_false, is_in_loop, found);
    } else if (const auto* loop = std::get_if<LoopSegment>(&segment.kind)) {
      std::set<const Graph*> graphs;
      add_graphs(loop->body, true, graphs);
      const auto has_open_sizes = [](const Graph* graph) { return !graph->is_static(); };
      if (is_in_loop ||
          std::ranges::any_of(graphs, [](const Graph* graph) { return grows(*graph); }))
        std::ranges::copy_if(graphs, std::inserter(found, found.end()), has_open_sizes);
    }
  }
}

void add_graphs(const Body& body, bool is_in_loop, std::set<const Graph*>& found) {
  add_graphs(body.segments, is_in_loop, found);
}

}  // namespace

bool grows(const Graph& graph) {
  return std::ranges::any_of(graph.inputs(), [&](ValueId input) {
    return std::ranges::any_of(graph.outputs(), [&](ValueId output) {
      return is_longer(graph.type(input), graph.type(output));
    });
  });
}

void NativeEngine::look_for_loops(const Model& model) {
  add_graphs(model.segments, false, in_growing_loops_);
}

NativeEngine::NativeEngine(Target target, CompileOptions options, Room room)
    : target_(std::move(target)), options_(std::move(options)), room_(room) {}

Result<NativeEngine::Sized*> NativeEngine::find(const GraphRef& graph,
                                                std::span<const Tensor> inputs) {
  if (options_.team == nullptr) {
    // The checks of a plan say whether its number fits.
    const int64_t threads = options_.plan.threads.value_or(target_.cores);
    options_.team =
        HONE_TRY(Team::create({.threads = std::clamp<int64_t>(threads, 1, target_.cores)}));
  }
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  auto known = std::ranges::find_if(
      sized_, [&](const Sized& one) { return one.graph == graph && one.types == types; });
  if (known != sized_.end()) {
    sized_.splice(sized_.begin(), sized_, known);
  } else {
    sized_.push_front(HONE_TRY(make(graph, std::move(types))));
    if (sized_.size() > room_.executables) sized_.pop_back();
  }
  return &sized_.front();
}

Result<std::shared_ptr<const Executable>> NativeEngine::executable(const GraphRef& graph,
                                                                   std::span<const Tensor> inputs) {
  return HONE_TRY(find(graph, inputs))->executable;
}

Result<std::vector<Tensor>> NativeEngine::run(const GraphRef& graph,
                                              std::span<const Tensor> inputs) {
  Sized& sized = *HONE_TRY(find(graph, inputs));
  RunOptions run = {.cancel = options_.cancel};
  if (is_profiled_) {
    run.profile = &sized.profile;
    run.trace = trace_;
    if (trace_ != nullptr) trace_->program = sized.program;
    ++sized.profiled_runs;
  }
  return sized.executable->run(inputs, run);
}

void NativeEngine::unload() {
  for (Sized& one : sized_) {
    HONE_CHECK(one.code != nullptr, "keep_code() comes before what is loaded elsewhere");
    one.executable.reset();
  }
}

Status NativeEngine::load_elsewhere(Rng& rng) {
  unload();
  for (Sized& one : sized_) {
    Image image;
    if (HONE_TRY(one.code->graph())->is_static())
      image = *HONE_TRY(one.code->image());
    else
      image = HONE_TRY(one.code->image_for(one.sizes));
    one.executable = HONE_TRY(hone::load_elsewhere(
        image, rng, {.team = options_.team, .memory_limit = options_.memory_limit}));
  }
  return {};
}

std::vector<NativeEngine::GraphProfile> NativeEngine::profiles() const {
  std::vector<GraphProfile> profiles;
  for (const Sized& one : sized_)
    if (one.profiled_runs > 0)
      profiles.push_back(
          {one.graph->name(), one.sizes, one.profiled_runs, one.profile, one.code, one.program});
  return profiles;
}

CompileOptions NativeEngine::options_of(const Graph* graph) const {
  CompileOptions options = options_;
  if (const auto given = plans_.find(graph); given != plans_.end()) {
    options.plan = given->second.plan;
    options.placed_plan = &given->second;
  }
  return options;
}

Result<NativeEngine::Sized> NativeEngine::make(const GraphRef& graph, std::vector<Type> types) {
  Sized made = {.graph = graph, .types = std::move(types)};
  made.sizes = HONE_TRY(bind_inputs(*graph, made.types));
  std::shared_ptr<Compilation> code;
  if (!graph->is_static()) code = HONE_TRY(open_code(graph));
  if (code != nullptr) {
    const Image image = HONE_TRY(code->image_for(made.sizes));
    made.executable = HONE_TRY(
        Executable::load(image, {.team = options_.team, .memory_limit = options_.memory_limit}));
  } else {
    ++compiled_;
    code = std::make_shared<Compilation>(HONE_TRY(specialize(*graph, made.sizes)), target_,
                                         options_of(graph.get()));
    made.executable = HONE_TRY(code->executable());
  }
  if (keeps_code_) made.code = std::move(code);
  made.program = programs_++;
  return made;
}

Result<std::shared_ptr<Compilation>> NativeEngine::open_code(const GraphRef& graph) {
  const auto given = plans_.find(graph.get());
  const Plan& plan = given == plans_.end() ? options_.plan : given->second.plan;
  const bool is_planned = plan.graph_hash != 0;
  auto met = std::ranges::find(open_, graph, &Open::graph);
  if (met == open_.end()) {
    open_.push_front({graph, nullptr});
    if (open_.size() > room_.graphs) open_.pop_back();
    const bool comes_back = grows(*graph) || in_growing_loops_.contains(graph.get());
    if (!is_planned && !comes_back) return std::shared_ptr<Compilation>();
    met = open_.begin();
  }
  open_.splice(open_.begin(), open_, met);
  Open& open = open_.front();
  if (open.compilation != nullptr || open.is_refused) return open.compilation;
  auto compilation = std::make_shared<Compilation>(*graph, target_, options_of(graph.get()));
  if (const auto kernels = compilation->kernels(); !kernels.ok()) {
    if (is_planned || kernels.error().code() != ErrorCode::unsupported) return kernels.error();
    open.is_refused = true;
    return std::shared_ptr<Compilation>();
  }
  ++compiled_;
  open.compilation = std::move(compilation);
  return open.compilation;
}

}  // namespace hone
