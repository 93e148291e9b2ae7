// Training steps, against those of PyTorch in turns: forward, backward, Adam, in f32. And what a
// step takes to compile, cold and from the cache. graph_sage_50 is what the network says of a graph
// of 50 nodes, without a step.
//   ms, rival_ms  medians of a step
//   ratio         the median of rival / hone over pairs of steps next to each other
//   mb, rival_mb  weights, states, batch and the peak of what a step allocates beside them: by the
//                 memory planner, and by the memory events of PyTorch's profiler
//
// The rows called half are steps within half of the temporaries, against those that store all:
//   slower            the median of half / all over pairs of steps
//   mb_all, mb_half   temporaries by the memory planner

#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "base/rng.h"
#include "bench/onnx_runtime.h"
#include "compile/cached_executable.h"
#include "learn/graph_data.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/memory_budget.h"
#include "learn/trainer.h"
#include "learn/training_step.h"
#include "planner/memory.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

constexpr double kSeconds = 20;  // of steps, for each row

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

Tensor random_reals(const Dims& dims, uint64_t seed) {
  const Type type = Type::get(DType::f32, dims);
  Rng rng(seed);
  std::vector<double> values(static_cast<size_t>(type.static_elements()));
  for (double& value : values) value = rng.normal();
  return Tensor::from_reals(type, values);
}

// A process that takes a step for each line that it reads.
class Rival {
 public:
  Rival(std::string_view model, int64_t threads) {
    int in[2], out[2];
    HONE_CHECK(pipe(in) == 0 && pipe(out) == 0, "no pipes");
    process_ = fork();
    HONE_CHECK(process_ >= 0, "no process");
    if (process_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      close(in[1]);
      close(out[0]);
      const std::string script = (root() / "bench/learn/rival.py").native(), name(model),
                        count = std::to_string(threads);
      execl("/usr/bin/python3", "python3", script.c_str(), name.c_str(), count.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
  }
  Rival(const Rival&) = delete;
  ~Rival() {
    std::fclose(to_);
    std::fclose(from_);
    waitpid(process_, nullptr, 0);
  }

  Result<double> step() { return ask("\n"); }
  Result<double> bytes() { return ask("memory\n"); }

 private:
  Result<double> ask(const char* what) {
    std::fputs(what, to_);
    std::fflush(to_);
    char line[64];
    if (std::fgets(line, sizeof line, from_) == nullptr) return bad_input("PyTorch ended");
    return std::atof(line);
  }

  pid_t process_;
  std::FILE* to_;
  std::FILE* from_;
};

// ---- hone's steps -------------------------------------------------------------------------------

// One batch, again and again.
class OneBatch : public Dataset {
 public:
  explicit OneBatch(Batch batch) : batch_(std::move(batch)) {}
  int64_t size() const override { return 1; }
  Result<Batch> batch(std::span<const int64_t>, int64_t) const override { return batch_; }

 private:
  Batch batch_;
};

Objective mlp_loss(Network& net) {
  const int64_t widths[] = {256, 256, 256, 256, 256, 256};
  return {mean_squared_error(mlp(net, "mlp", net.input("x"), widths), net.input("target"))};
}
Objective transformer_loss(Network& net) {
  Value x = net.input("x");
  for (const char* name : {"0", "1"}) x = transformer_layer(net, name, x, {.heads = 4});
  return {mean_squared_error(x, net.input("target"))};
}
Value sage(Network& net) {
  const Edges edges = edges_in(net, "edges");
  Value x = net.input("x");
  for (int i = 0; i < 3; ++i)
    x = graph_sage(net, std::to_string(i), i == 0 ? x : relu(x), edges, 64);
  return x;
}
Objective sage_loss(Network& net) { return {mean_squared_error(sage(net), net.input("target"))}; }

Batch rows(const Dims& dims) {
  return {{"x", random_reals(dims, 1)}, {"target", random_reals(dims, 2)}};
}

Batch graph(int64_t nodes, int64_t edges) {
  Batch batch = rows({nodes, 64});
  Rng rng(3);
  std::vector<int64_t> sources(static_cast<size_t>(edges)), targets(sources.size());
  for (int64_t& source : sources) source = rng.between(0, nodes - 1);
  for (int64_t& target : targets) target = rng.between(0, nodes - 1);
  HONE_CHECK(add_edges(batch, "edges", sources, targets, nodes).ok(), "a bad graph");
  return batch;
}

// Takes a step each time it is called.
using Step = std::function<Status()>;

// A step, and the outputs that are its function's.
struct StepGraph {
  Graph graph = Graph();
  std::vector<uint32_t> forward = {};
};

Result<StepGraph> network_graph(const Definition& loss, const Batch& batch) {
  const Forward forward = HONE_TRY(trace(loss, Network::Mode::training, types_of(batch)));
  NetworkStep step =
      HONE_TRY(network_step(forward, {.optimizer = HONE_TRY(find_optimizer("adam"))}));
  std::vector<uint32_t> outputs = step.forward();
  return StepGraph{std::move(step.graph), std::move(outputs)};
}

Result<Step> network_steps(const Definition& loss, Batch batch, const CompileOptions& compile,
                           const MemoryBudget& memory) {
  const auto data = std::make_shared<OneBatch>(std::move(batch));
  TrainingOptions options = {.memory = memory, .compile = compile};
  options.loader = {.batch_size = 1, .shuffles = false};
  const auto trainer =
      std::make_shared<Trainer>(
          HONE_TRY(Trainer::make(loss, *data, HONE_TRY(host_target()), options)));
  return Step([data, trainer]() -> Status {
    HONE_TRY(trainer->step());
    return {};
  });
}

Result<TrainingStep> resnet_step() {
  const Graph model = HONE_TRY(build_zoo_model("resnet18", {.batch = 8, .image = 64}));
  const Optimizer* adam = HONE_TRY(find_optimizer("adam"));
  return training_step(model, {.loss = "cross-entropy", .optimizer = adam});
}

Result<StepGraph> resnet_graph() { return StepGraph{HONE_TRY(resnet_step()).graph, {0}}; }

Result<Step> resnet_steps(const CompileOptions& compile, const MemoryBudget& memory) {
  TrainingStep step = HONE_TRY(resnet_step());
  const Target target = HONE_TRY(host_target());
  constexpr uint32_t kLoss[] = {0};
  step.graph = HONE_TRY(within_budget(step.graph, kLoss, memory, target, compile)).graph;
  const auto code = HONE_TRY(cached_executable(step.graph, target, compile));
  const auto tensors = std::make_shared<std::vector<Tensor>>();
  for (const image::Port& port : code->inputs()) {
    const auto found = std::ranges::find(step.state, port.name, &NamedTensor::name);
    tensors->push_back(found == step.state.end()
                           ? Tensor::zeros(port.type)
                           : Tensor::copy_of(port.type, found->tensor.bytes()));
  }
  (*tensors)[0] = random_reals({8, 3, 64, 64}, 1);
  return Step([code, tensors]() -> Status {
    std::vector<Tensor> inputs = std::exchange(*tensors, {});
    std::vector<Tensor> kept = inputs;
    const auto donors = code->donors();
    for (size_t o = 0; o < donors.size(); ++o)
      if (donors[o]) kept[*donors[o]] = Tensor::scalar(DType::f32, 0);  // let go
    std::vector<Tensor> outputs = HONE_TRY(code->run_donating(std::move(inputs)));
    for (size_t o = 0; o < donors.size(); ++o)
      if (donors[o]) kept[*donors[o]] = outputs[o];
    *tensors = std::move(kept);
    return {};
  });
}

// What the network says of one graph, with its weights as constants.
Result<Step> sage_inference(const CompileOptions& compile) {
  const auto batch = std::make_shared<Batch>(graph(50, 100));
  const BatchTypes types = types_of(*batch);
  std::vector<NamedTensor> weights;
  for (const Network::Port& port :
       HONE_TRY(trace(sage_loss, Network::Mode::evaluation, types)).of(Network::Role::weight))
    weights.push_back({port.name, initial_tensor(port.initializer, port.type, port.name, 0)});
  Builder b("sage");
  Network net(b, Network::Mode::evaluation, types, &weights);
  const Value y = sage(net);
  const Graph network = HONE_TRY(b.finish({y}));
  const auto code = HONE_TRY(cached_executable(network, HONE_TRY(host_target()), compile));
  const auto result = std::make_shared<Tensor>(Tensor::zeros(code->outputs()[0].type));
  const auto inputs = std::make_shared<std::vector<const void*>>();
  for (const Network::Port& port : net.ports())
    inputs->push_back(batch->at(port.name).bytes().data());
  return Step([batch, code, result, inputs]() -> Status {
    void* const outputs[] = {result->mutable_bytes().data()};
    return code->run(*inputs, outputs);
  });
}

struct Model {
  std::string_view name;
  Result<Step> (*make)(const CompileOptions& compile, const MemoryBudget& memory);
  Result<StepGraph> (*graph)();  // null: it takes no training steps
};
template <class MakeBatch>
const Batch& batch_of() {
  static const Batch batch = MakeBatch()();
  return batch;
}
template <Objective (*loss)(Network&), class MakeBatch>
constexpr Model network(std::string_view name, MakeBatch) {
  return {name,
          [](const CompileOptions& compile, const MemoryBudget& memory) {
            return network_steps(loss, batch_of<MakeBatch>(), compile, memory);
          },
          [] { return network_graph(loss, batch_of<MakeBatch>()); }};
}
constexpr Model kModels[] = {
    network<mlp_loss>("mlp", [] { return rows({1024, 256}); }),
    network<transformer_loss>("transformer", [] { return rows({8, 128, 256}); }),
    network<sage_loss>("graph_sage", [] { return graph(20'000, 40'000); }),
    {"graph_sage_50",
     [](const CompileOptions& compile, const MemoryBudget&) { return sage_inference(compile); },
     nullptr},
    {"resnet18", resnet_steps, resnet_graph},
};

// ---- Rows ---------------------------------------------------------------------------------------

constexpr double kMegabyte = 1e6;

// All that a step reads, writes and keeps.
Result<int64_t> bytes_of(const Model& model, const CompileOptions& compile) {
  const StepGraph step = HONE_TRY(model.graph());
  Compilation compilation(step.graph, HONE_TRY(host_target()), compile);
  const Plan* plan = HONE_TRY(compilation.plan());
  const Graph* prepared = HONE_TRY(compilation.graph());
  int64_t bytes = HONE_TRY(memory_of(*prepared, *plan))->height;
  for (Type type : prepared->input_types()) bytes += type.static_bytes();
  for (Type type : prepared->output_types()) bytes += type.static_bytes();
  for (const Donation& donation : prepared->donations())
    bytes -= prepared->output_types()[donation.output].static_bytes();
  for (NodeId n : prepared->nodes())
    if (prepared->opcode(n) == Opcode::constant)
      bytes += prepared->type(prepared->result(n)).static_bytes();
  return bytes;
}

// From the network to a step that runs.
Result<double> seconds_to_compile(const Model& model, const CompileOptions& compile) {
  const double start = now();
  const StepGraph step = HONE_TRY(model.graph());
  HONE_TRY(cached_executable(step.graph, HONE_TRY(host_target()), compile));
  return now() - start;
}

Status measure_half(benchmark::State& state, const Model& model, int64_t threads) {
  if (threads > HONE_TRY(host_target()).cores) return over_limit("the machine has fewer cores");
  CompileOptions compile;
  compile.plan.threads = threads;
  const MemoryBudget half = {.kind = MemoryBudget::Kind::share, .share = 0.5};
  const StepGraph step = HONE_TRY(model.graph());
  const SmallerStep smaller =
      HONE_TRY(within_budget(step.graph, step.forward, half, HONE_TRY(host_target()), compile));
  state.counters["mb_all"] = static_cast<double>(smaller.bytes_all) / kMegabyte;
  state.counters["mb_half"] = static_cast<double>(smaller.bytes) / kMegabyte;
  const Step all = HONE_TRY(model.make(compile, {})), less = HONE_TRY(model.make(compile, half));
  HONE_TRY(all());
  HONE_TRY(less());
  std::vector<double> seconds, ratios;
  for (auto _ : state) {
    const double end = now() + kSeconds / 2;
    while (now() < end || seconds.size() < 5) {
      const double start = now();
      HONE_TRY(all());
      const double middle = now();
      HONE_TRY(less());
      seconds.push_back(now() - middle);
      ratios.push_back(seconds.back() / (middle - start));
    }
    state.SetIterationTime(median(seconds));
  }
  state.counters["slower"] = median(ratios);
  return {};
}

Status measure(benchmark::State& state, const Model& model, int64_t threads) {
  if (threads > HONE_TRY(host_target()).cores) return over_limit("the machine has fewer cores");
  const TempDir folder = HONE_TRY(TempDir::create(std::filesystem::temp_directory_path()));
  const auto cache = HONE_TRY(CompileCache::open(folder.path() / "cache"));
  CompileOptions compile;
  compile.plan.threads = threads;
  compile.cache = cache.get();
  if (model.graph != nullptr) {
    HONE_TRY(model.graph());  // makes the batch
    state.counters["cold_s"] = HONE_TRY(seconds_to_compile(model, compile));
    state.counters["cached_ms"] = 1e3 * HONE_TRY(seconds_to_compile(model, compile));
  }
  const Step step = HONE_TRY(model.make(compile, {}));

  Rival rival(model.name, threads);
  for (int i = 0; i < 3; ++i) {
    HONE_TRY(step());
    HONE_TRY(rival.step());
  }
  std::vector<double> own, others, ratios;
  for (auto _ : state) {
    const double end = now() + kSeconds;
    while (now() < end || own.size() < 5) {
      const double start = now();
      HONE_TRY(step());
      own.push_back(now() - start);
      others.push_back(HONE_TRY(rival.step()));
      ratios.push_back(others.back() / own.back());
    }
    state.SetIterationTime(median(own));
  }
  if (model.graph != nullptr) {
    state.counters["mb"] = static_cast<double>(HONE_TRY(bytes_of(model, compile))) / kMegabyte;
    state.counters["rival_mb"] = HONE_TRY(rival.bytes()) / kMegabyte;
  }
  state.counters["ms"] = 1e3 * median(own);
  state.counters["rival_ms"] = 1e3 * median(others);
  state.counters["ratio"] = median(ratios);
  return {};
}

using Measure = Status (*)(benchmark::State& state, const Model& model, int64_t threads);

void add_row(std::string_view prefix, Measure measure, const Model& model, int64_t threads) {
  const std::string name = fmt::format("{}{}/threads:{}", prefix, model.name, threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [measure, &model, threads](benchmark::State& state) {
                                 const Status status = measure(state, model, threads);
                                 if (!status.ok())
                                   state.SkipWithError(status.error().to_string().c_str());
                               })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime()
      ->Iterations(1);
}

const int kRegistered = [] {
  for (const Model& model : kModels)
    for (int64_t threads : {1, 2}) {
      add_row("", measure, model, threads);
      if (model.graph != nullptr) add_row("half/", measure_half, model, threads);
    }
  return 0;
}();

}  // namespace
}  // namespace hone::bench
