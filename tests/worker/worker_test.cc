#include "worker/serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include "base/file.h"
#include "base/forked.h"
#include "base/rng.h"
#include "base/text.h"
#include "compile/compilation.h"
#include "compile/honec.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/worker/running_worker.h"
#include "transport/threads.h"
#include "worker/remote_model.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;
using Clock = std::chrono::steady_clock;

using tested::RunningWorker;

constexpr const char* kSecret = tested::kWorkerSecret;
constexpr const char* kVersion = tested::kWorkerVersion;

// A compiled file, and what it computes.
struct Sample {
  TempDir folder = *TempDir::create(std::filesystem::temp_directory_path());
  std::string path = folder.path() / "model.honec";
  std::vector<Tensor> inputs, outputs;

  explicit Sample(std::string_view text) {
    const Graph graph = *parse_graph(text);
    inputs = *random_inputs(graph, 1);
    Compilation compilation(graph, *host_target());
    outputs = *(*compilation.executable())->run(inputs);
    const HonecProgram program = {*compilation.image(), "", ""};
    EXPECT_TRUE(write_honec(path, {&program, 1}, kVersion).ok());
  }
};

const Sample& small() {
  static const Sample sample(R"(
    graph @small(%x: f32[40, 8], %n: i64[3]) -> (f32[40], i64[3]) {
      %s = reduce %x {kind = sum, axes = [1]}
      %m = neg %n
      return %s, %m
    })");
  return sample;
}

void expect_outputs(const Sample& sample, const Result<std::vector<Tensor>>& outputs) {
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), sample.outputs.size());
  for (size_t i = 0; i < outputs->size(); ++i)
    EXPECT_TRUE((*outputs)[i].same_bytes(sample.outputs[i]));
}

Result<std::shared_ptr<const RemoteModel>> remote(const std::shared_ptr<Worker>& worker,
                                                  const Sample& sample) {
  return RemoteModel::make(worker, *HonecFile::open(sample.path), 1 << 20);
}

TEST(Worker, ComputesTheSameBits) {
  const RunningWorker worker;
  const auto model = *remote(worker.call(), small());
  for (int i = 0; i < 3; ++i) expect_outputs(small(), model->run(small().inputs));
}

TEST(Worker, IsSentAProgramOnce) {
  RunningWorker worker;
  for (int i = 0; i < 3; ++i) {
    const auto model = *remote(worker.call(), small());
    expect_outputs(small(), model->run(small().inputs));
  }
  EXPECT_EQ(worker.told("sent program"), 1U);
}

TEST(Worker, KeepsTheProgramsUsedLast) {
  const HonecFile file = *HonecFile::open(small().path);
  const auto program = *LoadedModel::load(file);
  const Digest a = {std::byte{1}}, b = {std::byte{2}}, c = {std::byte{3}};
  KeptPrograms kept(file.bytes() * 2);
  kept.add(a, program);
  kept.add(b, program);
  EXPECT_NE(kept.find(a), nullptr);
  kept.add(c, program);
  EXPECT_NE(kept.find(a), nullptr);
  EXPECT_EQ(kept.find(b), nullptr);
  EXPECT_NE(kept.find(c), nullptr);
}

TEST(Worker, ServesOneCallerAfterAnother) {
  RunningWorker worker;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      const auto model = remote(worker.call(), small());
      ASSERT_TRUE(model.ok());
      expect_outputs(small(), (*model)->run(small().inputs));
    });
  for (std::thread& each : callers) each.join();
}

TEST(Worker, RefusesCallersThatDiffer) {
  RunningWorker worker;
  const StreamOptions options = {.join_seconds = 0.5};
  EXPECT_THAT(Worker::call(worker.address(), "another secret, a wrong one", kVersion, options),
              refuses(ErrorCode::limit, "no worker answers at 127.0.0.1"));
  EXPECT_THAT(Worker::call(worker.address(), kSecret, "9.9.9", options),
              refuses(ErrorCode::unsupported, "127.0.0.1 ... 1.2.3 ... 9.9.9"));
  EXPECT_THAT(Worker::call({"127.0.0.1", 1}, kSecret, kVersion, options),
              refuses(ErrorCode::limit, "127.0.0.1:1"));
  expect_outputs(small(), (*remote(worker.call(), small()))->run(small().inputs));
}

// A fault of the caller ends the conversation or is answered, and the worker goes on.
TEST(Worker, RefusesWhatDoesNotFit) {
  RunningWorker worker({.version = {}, .memory_limit = 1 << 20});
  const std::vector<image::Port> none;
  EXPECT_THAT(worker.call()->run({}, small().inputs, none, 1000, {}),
              refuses(ErrorCode::bad_input, "was not sent"));
  const std::string nonsense(1000, 'x');
  const auto bytes = std::as_bytes(std::span(nonsense.data(), nonsense.size()));
  EXPECT_THAT(worker.call()->load(bytes, sha256(bytes)),
              refuses(ErrorCode::bad_input, "127.0.0.1"));
  EXPECT_THAT(worker.call()->load(bytes, {}), refuses(ErrorCode::bad_input, "announced"));
  const std::vector<std::byte> large(600000);
  EXPECT_THAT(worker.call()->load(large, sha256(large)), refuses(ErrorCode::limit, "600000 bytes"));
  const auto model = *remote(worker.call(), small());
  const std::vector<Tensor> swapped = {small().inputs[1], small().inputs[0]};
  EXPECT_THAT(model->run(swapped), refuses(ErrorCode::bad_input, "'x' is i64[3] ... f32[40, 8]"));
  expect_outputs(small(), (*remote(worker.call(), small()))->run(small().inputs));
}

TEST(Worker, EndsARunThatIsCancelled) {
  RunningWorker worker;
  const auto model = *remote(worker.call(), small());
  CancelToken cancel;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel.cancel();
  });
  Result<std::vector<Tensor>> outputs = model->run(small().inputs, {.cancel = &cancel});
  while (outputs.ok()) outputs = model->run(small().inputs, {.cancel = &cancel});
  other.join();
  EXPECT_THAT(outputs, refuses(ErrorCode::interrupted, "stopped"));
}

// The first device has no more to do, and waits for the second one.
TEST(Worker, IsStoppedWhileADeviceWaits) {
  const std::unique_ptr<Transport> transport = make_thread_transport(2).value();
  CancelToken cancel;
  KeptPrograms programs(1 << 20);
  const WorkerOptions options = {.version = kVersion, .cancel = &cancel};
  std::future<Status> served =
      std::async(std::launch::async, [&] { return serve_caller(*transport, programs, options); });
  Talk talk(*transport, kCallerDevice);
  WorkerGreeting greeting;
  WorkerAnswer answer;
  ASSERT_TRUE(talk.hear(greeting, "waits").ok());
  ASSERT_TRUE(talk.say(WorkerRequest{.task = WorkerTask::start, .count = 2}, "asks").ok());
  ASSERT_TRUE(talk.hear(answer, "waits").ok());
  ASSERT_TRUE(talk.say(WorkerRequest{.task = WorkerTask::close}, "asks").ok());
  EXPECT_EQ(served.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  cancel.cancel();
  EXPECT_EQ(served.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  transport->cancel(over_limit("the test is over"));
}

// ---- Workers that are killed or stopped --------------------------------------------------------

const Sample& large() {
  static const Sample sample(R"(
    graph @large(%x: f32[100000]) -> (f32[100000]) {
      %y = neg %x
      return %y
    })");
  return sample;
}

// The caller ends in time, with the code of a lost peer, and names the worker.
void expect_loss(int signal, int64_t microseconds, const StreamOptions& streams) {
  const TcpListener listener = *TcpListener::open();
  const HostPort address = {"127.0.0.1", listener.port()};
  const Sample& sample = large();
  const std::vector<ForkedWork> works = {
      [&](const Tell&) {
        std::thread([=] {
          std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
          kill(getpid(), signal);
        }).detach();
        (void)run_worker(listener, kSecret,
                         {.version = kVersion, .threads = 1, .streams = streams});
      },
      [&](const Tell& tell) {
        Clock::time_point last = Clock::now();
        const auto ends = [&](const Error& error) {
          const double seconds = std::chrono::duration<double>(Clock::now() - last).count();
          tell(fmt::format("{} {:.2f} {}", static_cast<int>(error.code()), seconds,
                           error.to_string()));
        };
        StreamOptions options = streams;
        options.join_seconds = kCallSeconds;
        const auto worker = Worker::call(address, kSecret, kVersion, options);
        if (!worker.ok()) return ends(worker.error());
        const auto model = RemoteModel::make(*worker, *HonecFile::open(sample.path), 1 << 20);
        if (!model.ok()) return ends(model.error());
        while (true) {
          last = Clock::now();
          const auto outputs = (*model)->run(sample.inputs);
          if (!outputs.ok()) return ends(outputs.error());
        }
      }};
  std::string told;
  const auto ends = run_forked(works, {.silence_seconds = 8}, [&](size_t i, std::string_view text) {
    if (i == 1) told = text;
  });
  ASSERT_TRUE(ends.ok());
  EXPECT_TRUE((*ends)[1].is_done()) << "signal " << (*ends)[1].signal;
  EXPECT_THAT(told, says(fmt::format("5 ... {}", to_string(address))));
  const std::vector<std::string_view> words = split_words(told);
  ASSERT_GE(words.size(), 2U);
  EXPECT_LT(*parse_double(words[1]), 5) << told;
}

void expect_losses(uint64_t seed, int count) {
  Rng rng(seed);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
    expect_loss(SIGKILL, rng.between(0, 60000), {.join_seconds = 3});
}

TEST(LostWorker, EndsItsCallerWhenItIsKilled) { expect_losses(3, 5); }
TEST(LostWorker, DISABLED_SweepOfKills) { expect_losses(4, 300); }

TEST(LostWorker, EndsItsCallerWhenItIsStopped) {
  expect_loss(SIGSTOP, 60000, {.beat_seconds = 0.1, .silence_seconds = 1, .join_seconds = 3});
}

// And the other way round: a worker goes on when its caller is killed.
TEST(LostWorker, GoesOnWithoutACallerThatIsKilled) {
  RunningWorker worker;
  (void)large();
  for (int i = 0; i < 3; ++i) {
    const ForkedWork work = [&](const Tell&) {
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        raise(SIGKILL);
      }).detach();
      const auto called = Worker::call(worker.address(), kSecret, kVersion);
      if (!called.ok()) return;
      const auto model = RemoteModel::make(*called, *HonecFile::open(large().path), 1 << 20);
      while (model.ok() && (*model)->run(large().inputs).ok()) {
      }
    };
    ASSERT_TRUE(run_forked(std::span(&work, 1), {}, [](size_t, std::string_view) {}).ok());
  }
  expect_outputs(small(), (*remote(worker.call(), small()))->run(small().inputs));
}

}  // namespace
}  // namespace hone::HONE_FILE
