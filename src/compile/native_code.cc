#include "compile/native_code.h"

#include <algorithm>

#include "compile/early_code.h"
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

void NativeCode::look_for_loops(const Model& model) {
  add_graphs(model.segments, false, in_growing_loops_);
}

NativeCode::NativeCode(Target target, CompileOptions options, Room room)
    : target_(std::move(target)), options_(std::move(options)), room_(room) {}

int64_t NativeCode::threads() const {
  // The checks of a plan say whether its number fits.
  const int64_t planned = options_.plan.threads.value_or(target_.cores);
  const int64_t threads = std::clamp<int64_t>(planned, 1, target_.cores);
  const std::scoped_lock lock(mutex_);
  return options_.team == nullptr ? threads : std::min(threads, options_.team->threads());
}

int64_t NativeCode::compiled() const {
  const std::scoped_lock lock(mutex_);
  return compiled_;
}

Status NativeCode::finish(Progress* progress, const CancelToken* cancel) const {
  std::vector<std::shared_ptr<const Runnable>> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const Sized& one : sized_) all.push_back(one.executable);
  }
  for (const std::shared_ptr<const Runnable>& one : all)
    if (const auto* early = dynamic_cast<const EarlyCode*>(one.get()))
      HONE_TRY(early->finish(progress, cancel));
  return {};
}

size_t NativeCode::early_kernels() const {
  const std::scoped_lock lock(mutex_);
  size_t kernels = 0;
  for (const Sized& one : sized_)
    if (const auto* early = dynamic_cast<const EarlyCode*>(one.executable.get()))
      kernels += early->kernels();
  return kernels;
}

size_t NativeCode::executables() const {
  const std::scoped_lock lock(mutex_);
  return sized_.size();
}

Result<std::shared_ptr<const Runnable>> NativeCode::executable(const GraphRef& graph,
                                                               std::span<const Tensor> inputs) {
  // A GPU's cores are its SMs.
  const int64_t threads = target_.gpu ? HONE_TRY(host_target()).cores : this->threads();
  const std::scoped_lock lock(mutex_);
  if (options_.team == nullptr) options_.team = HONE_TRY(Team::create({.threads = threads}));
  const auto is_for = [&](const Sized& one) {
    return one.graph == graph && std::ranges::equal(one.types, inputs, {}, {}, &Tensor::type);
  };
  auto known = std::ranges::find_if(sized_, is_for);
  if (known != sized_.end()) {
    sized_.splice(sized_.begin(), sized_, known);
  } else {
    sized_.push_front(HONE_TRY(make(graph, types_of(inputs))));
    if (sized_.size() > room_.executables) sized_.pop_back();
  }
  return sized_.front().executable;
}

void NativeCode::unload() {
  if (target_.gpu) return;
  const std::scoped_lock lock(mutex_);
  for (Sized& one : sized_) {
    HONE_CHECK(one.from != nullptr, "keep_sources() comes before what is loaded elsewhere");
    one.executable.reset();
  }
}

Status NativeCode::load_elsewhere(Rng& rng) {
  if (target_.gpu) return {};  // places in a GPU's memory are the driver's to choose
  unload();
  const std::scoped_lock lock(mutex_);
  for (Sized& one : sized_) {
    Image image;
    if (HONE_TRY(one.from->graph())->is_static())
      image = *HONE_TRY(one.from->image());
    else
      image = HONE_TRY(one.from->image_for(one.sizes));
    one.executable = HONE_TRY(hone::load_elsewhere(
        image, rng, {.team = options_.team, .memory_limit = options_.memory_limit}));
  }
  return {};
}

std::optional<NativeCode::Made> NativeCode::made(const GraphRef& graph,
                                                 std::span<const Type> types) const {
  const std::scoped_lock lock(mutex_);
  for (const Sized& one : sized_)
    if (one.graph == graph && std::ranges::equal(one.types, types) && one.from != nullptr)
      return Made{graph->name(), one.sizes, one.from};
  return std::nullopt;
}

CompileOptions NativeCode::options_of(const Graph* graph) const {
  CompileOptions options = options_;
  if (const auto given = plans_.find(graph); given != plans_.end()) {
    options.plan = given->second.plan;
    options.placed_plan = &given->second;
  }
  return options;
}

Result<NativeCode::Sized> NativeCode::make(const GraphRef& graph, std::vector<Type> types) {
  Sized made = {.graph = graph, .types = std::move(types)};
  made.sizes = HONE_TRY(bind_inputs(*graph, made.types));
  std::shared_ptr<Compilation> code;
  if (!graph->is_static()) code = HONE_TRY(open_code(graph));
  if (code != nullptr) {
    made.executable = HONE_TRY(code->runnable_for(made.sizes));
  } else {
    ++compiled_;
    code = std::make_shared<Compilation>(HONE_TRY(specialize(*graph, made.sizes)), target_,
                                         options_of(graph.get()));
    made.executable = HONE_TRY(code->runnable());
  }
  if (keeps_sources_) made.from = std::move(code);
  return made;
}

Result<std::shared_ptr<Compilation>> NativeCode::open_code(const GraphRef& graph) {
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
