#include "worker/crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "base/forked.h"
#include "base/rng.h"
#include "base/sanitizers.h"
#include "base/text.h"
#include "compile/batch_model.h"
#include "compile/spmd_programs.h"
#include "ir/text.h"
#include "program/instantiate.h"
#include "session/program_text.h"
#include "tests/base/says_testing.h"
#include "tests/program/message_programs.h"
#include "tests/program/spmd_testing.h"
#include "tests/transport/processes.h"
#include "tests/worker/no_threads.h"
#include "tests/worker/running_worker.h"
#include "transport/threads.h"
#include "worker/watch.h"
#include "zoo/inputs.h"

// Devices of several processes, beside devices of this one.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::refuses;
using tested::RunningWorker;
using tested::says;
using tested::SpmdCase;
using Clock = std::chrono::steady_clock;

const CrewOptions kOptions = {.version = tested::kWorkerVersion, .work = 7};
const CrewOptions kOfHosts = {.version = tested::kWorkerVersion};

// ---- Tensors of all devices, one behind the other
// ------------------------------------------------

Tensor joined(const DeviceTensors& devices, size_t i, Type type) {
  if (type.rank() == 0) return devices[0][i];
  Tensor whole = Tensor::zeros(type);
  std::byte* to = whole.mutable_bytes().data();
  for (const std::vector<Tensor>& own : devices) {
    const std::span<const std::byte> bytes = own[i].bytes();
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
  return whole;
}

// Scalars are the same for all.
void share_scalars(SpmdCase& drawn) {
  for (std::vector<Tensor>& own : drawn.inputs)
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i].type().rank() == 0) own[i] = drawn.inputs[0][i];
}

Result<DividedCode> programs_of(const SpmdCase& drawn) {
  CompileOptions options;
  options.plan.threads = 1;
  return spmd_programs(drawn.graph, *host_target(), std::move(options), drawn.devices, {});
}

Result<std::vector<Tensor>> run_on(Crew& crew, const SpmdCase& drawn) {
  const auto devices = HONE_TRY(crew.load(HONE_TRY(programs_of(drawn))));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < devices->inputs().size(); ++i)
    inputs.push_back(joined(drawn.inputs, i, devices->inputs()[i].type));
  std::vector<Tensor> outputs = HONE_TRY(devices->run(inputs));
  const std::vector<Tensor> again = HONE_TRY(devices->run(inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].same_bytes(again[i])) return bad_input("another run gives other bits");
  return outputs;
}

const SpmdCase& long_case() {
  static const SpmdCase made = [] {
    SpmdCase drawn;
    drawn.devices = 3;
    drawn.graph = parse_graph(R"(
      graph @sums(%x: f32[30000]) -> f32[30000] {
        %s = all_reduce %x {kind = sum, group_size = 3}
        %y = all_reduce %s {kind = max, group_size = 3}
        return %y
      })")
                      .value();
    for (int i = 0; i < 3; ++i) drawn.inputs.push_back(*random_inputs(drawn.graph, 5));
    return drawn;
  }();
  return made;
}

// Compiled before anybody forks.
const DividedCode& long_programs() {
  static const DividedCode made = *programs_of(long_case());
  return made;
}

using RunCrew = std::function<Result<std::vector<Tensor>>(Crew& crew)>;

// All ranks of a group; those other than the first serve in threads.
Result<std::vector<Tensor>> run_by_ranks(const tested::JoinGroup& join, size_t processes,
                                         const RunCrew& run) {
  std::vector<std::thread> ranks;
  for (size_t i = 1; i < processes; ++i)
    ranks.emplace_back([join, i] {  // a call changes it
      const auto group = join(static_cast<int32_t>(i));
      ASSERT_TRUE(group.ok()) << group.error().to_string();
      const Status served = serve_rank(**group, kOptions);
      EXPECT_TRUE(served.ok()) << served.error().to_string();
    });
  const auto lead = [&]() -> Result<std::vector<Tensor>> {
    const auto crew = HONE_TRY(Crew::lead(HONE_TRY(join(0)), "rank", kOptions));
    return run(*crew);
  };
  Result<std::vector<Tensor>> outputs = lead();
  for (std::thread& rank : ranks) rank.join();
  return outputs;
}

// The devices, on fewer processes if there are several.
std::vector<int32_t> divided(int32_t devices) {
  if (devices == 1) return {1};
  return devices == 4 ? std::vector<int32_t>{2, 1, 1} : std::vector<int32_t>{devices - 1, 1};
}

std::string differences(const SpmdCase& drawn, const DeviceTensors& expected,
                        const Result<std::vector<Tensor>>& outputs) {
  if (!outputs.ok()) return outputs.error().to_string();
  for (size_t i = 0; i < outputs->size(); ++i)
    if (!(*outputs)[i].same_bytes(joined(expected, i, (*outputs)[i].type())))
      return fmt::format("output {} of {}", i, print(drawn.graph));
  return "";
}

// Threads, shared memory, TCP, and workers of hosts. `expect` gets what comes out.
void run_on_each_transport(
    int32_t count, const RunCrew& run,
    const std::function<void(std::string_view how, const Result<std::vector<Tensor>>&)>& expect) {
  const std::vector<int32_t> devices = divided(count);
  const auto threads = [&](int32_t) { return make_thread_transport(count); };
  expect("threads", run_by_ranks(threads, 1, run));
  expect("shared", run_by_ranks(tested::by_shared_memory(devices), devices.size(), run));
  expect("tcp", run_by_ranks(tested::by_tcp(devices), devices.size(), run));
  const RunningWorker a, b;
  std::vector<Host> hosts = {{a.address(), count}};
  if (count > 1) hosts = {{a.address(), 1}, {b.address(), count - 1}};
  expect("hosts", run(**Crew::call(hosts, tested::kWorkerSecret, kOfHosts)));
}

void check_random(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    SpmdCase drawn = tested::draw_spmd(seed, 4, true);
    share_scalars(drawn);
    const Result<DividedCode> programs = programs_of(drawn);
    ASSERT_TRUE(programs.ok()) << programs.error().to_string();
    const auto code = *Executable::load(programs->images[0]);
    const DeviceTensors expected =
        *tested::run_by_threads(drawn.devices, [&](const DevicePlace& place) {
          return code->run(drawn.inputs[static_cast<size_t>(place.device)], {.place = place});
        });
    ASSERT_EQ(tested::judge(drawn, expected), "");
    run_on_each_transport(
        drawn.devices, [&](Crew& crew) { return run_on(crew, drawn); },
        [&](std::string_view how, const Result<std::vector<Tensor>>& outputs) {
          EXPECT_EQ(differences(drawn, expected, outputs), "") << how;
        });
  }
}

TEST(Crew, GivesTheBitsOfThreadsOnEachTransport) { check_random(0, 6); }
TEST(Crew, DISABLED_SweepOfTransports) { check_random(1'000, 100); }

// ---- A program for each device
// --------------------------------------------------------

Tensor message_tensor(const tested::MessagePrograms& drawn, size_t message) {
  Rng rng(message);
  std::vector<int64_t> numbers(static_cast<size_t>(drawn.messages[message].bytes));
  for (int64_t& each : numbers) each = rng.between(0, 255);
  return Tensor::from_integers(Type::get(DType::u8, {std::ssize(numbers)}), numbers);
}

// A message is an input of its sender, and an output of whoever takes it.
void check_messages(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    tested::MessagePrograms drawn;
    do drawn = tested::draw_message_programs(rng, 6);
    while (!drawn.is_right);
    const DevicePrograms programs = parse_programs(drawn.text, "drawn").value();
    std::vector<Image> images;
    for (const Program& program : programs.programs)
      images.push_back(instantiate(program, {}, {}).value());
    std::vector<Tensor> inputs, wanted;
    for (size_t d = 0; d < drawn.sent.size(); ++d) {
      for (const size_t m : drawn.sent[d]) inputs.push_back(message_tensor(drawn, m));
      for (const size_t m : drawn.taken[d]) wanted.push_back(message_tensor(drawn, m));
    }
    run_on_each_transport(
        drawn.devices,
        [&](Crew& crew) -> Result<std::vector<Tensor>> {
          const auto code =
              HONE_TRY(crew.load_each(images, program_of_each(programs, drawn.devices)));
          HONE_TRY(code->run(inputs));
          return code->run(inputs);
        },
        [&](std::string_view how, const Result<std::vector<Tensor>>& outputs) {
          ASSERT_TRUE(outputs.ok()) << how << ": " << outputs.error().to_string();
          ASSERT_EQ(outputs->size(), wanted.size());
          for (size_t i = 0; i < wanted.size(); ++i)
            EXPECT_TRUE((*outputs)[i].same_bytes(wanted[i])) << how << ", output " << i;
        });
  }
}
TEST(Crew, DevicesRunProgramsOfTheirOwnOnEachTransport) { check_messages(0, 4); }
TEST(Crew, DISABLED_SweepOfPrograms) { check_messages(1'000, 100); }

// Several runs, one behind the other: each with tensors of its own, and all in order.
void check_runs(uint64_t first, uint64_t count, size_t runs) {
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    tested::MessagePrograms drawn;
    do drawn = tested::draw_message_programs(rng, 6);
    while (!drawn.is_right);
    const DevicePrograms programs = parse_programs(drawn.text, "drawn").value();
    std::vector<Image> images;
    for (const Program& program : programs.programs)
      images.push_back(instantiate(program, {}, {}).value());
    const auto tensors = [&](const std::vector<std::vector<size_t>>& messages, size_t run) {
      std::vector<Tensor> all;
      for (const std::vector<size_t>& of_device : messages)
        for (const size_t m : of_device) {
          Tensor one = message_tensor(drawn, m);
          for (std::byte& byte : one.mutable_bytes()) byte ^= static_cast<std::byte>(run);
          all.push_back(std::move(one));
        }
      return all;
    };
    std::vector<std::vector<Tensor>> inputs;
    for (size_t k = 0; k < runs; ++k) inputs.push_back(tensors(drawn.sent, k));
    const auto run = [&](Crew& crew) -> Result<std::vector<Tensor>> {
      const auto code = HONE_TRY(crew.load_each(images, program_of_each(programs, drawn.devices)));
      std::vector<Tensor> joined;
      for (std::vector<Tensor>& each : HONE_TRY(code->run_all(inputs)))
        std::ranges::move(each, std::back_inserter(joined));
      return joined;
    };
    run_on_each_transport(
        drawn.devices, run, [&](std::string_view how, const Result<std::vector<Tensor>>& outputs) {
          ASSERT_TRUE(outputs.ok()) << how << ": " << outputs.error().to_string();
          size_t next = 0;
          for (size_t k = 0; k < runs; ++k)
            for (const Tensor& wanted : tensors(drawn.taken, k))
              EXPECT_TRUE(outputs->at(next++).same_bytes(wanted)) << how << ", run " << k;
        });
  }
}
TEST(Crew, RunsFollowEachOtherOnEachTransport) { check_runs(20, 2, 7); }
TEST(Crew, DISABLED_SweepOfRuns) { check_runs(2'000, 60, 20); }

TEST(Crew, RefusesProgramsForOtherDevices) {
  const DevicePrograms one =
      parse_programs("program @p {\n  threads 1\n  frame @main(%x: f32[2]) -> () {\n  }\n}\n", "p")
          .value();
  const std::vector<Image> images = {instantiate(one.programs[0], {}, {}).value()};
  const auto crew = Crew::lead(make_thread_transport(2).value(), "rank", kOptions).value();
  EXPECT_THAT(crew->load_each(images, std::vector<uint32_t>{0}), says("1 devices ... 2"));
  EXPECT_THAT(crew->load_each(images, std::vector<uint32_t>{0, 1}), says("program 1 of 1"));
  const auto code = crew->load_each(images, std::vector<uint32_t>{0, 0}).value();
  EXPECT_EQ(code->inputs()[1].name, "x@1");
  const Tensor x = Tensor::zeros(Type::get(DType::f32, {2}));
  EXPECT_THAT(code->run(std::vector{x}), says("1 inputs ... 2"));
  EXPECT_THAT(code->run(std::vector{x, Tensor::zeros(Type::get(DType::f32, {3}))}),
              says("x@1 ... f32[3] ... f32[2]"));
  EXPECT_TRUE(code->run(std::vector{x, x}).ok());
}

// The parts of a tensor of all devices, which may share a byte.
TEST(Crew, TensorsOfAllDevicesAreThoseOfEach) {
  const Graph graph =
      parse_graph("graph @g(%a: i4[3], %b: f32[2, 2], %c: f32[]) { return %a, %b, %c }").value();
  const std::vector<Tensor> all = {
      Tensor::from_integers(Type::get(DType::i4, {6}), std::vector<int64_t>{1, -2, 3, -4, 5, -6}),
      Tensor::from_reals(Type::get(DType::f32, {4, 2}),
                         std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}),
      Tensor::scalar(DType::f32, 9)};
  const DeviceTensors each = tensors_of_each(all, graph, 2);
  EXPECT_EQ(each[1][0].integer_at(0), -4);
  EXPECT_EQ(each[1][1].real_at(0), 5);
  EXPECT_EQ(each[1][2].real_at(0), 9);
  const std::vector<Tensor> again = tensors_of_all(each);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(again[i].same_bytes(all[i])) << i;
}

// ---- A batch ------------------------------------------------------------------------------------

constexpr std::string_view kRows = R"(
graph @rows(%x: f32[N, 4], %w: f32[4, 3]) -> (f32[N, 3], f32[4, N], i64[N]) where N in 1..64 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  %t = transpose %x {permutation = [1, 0]}
  %i = iota {dtype = i64, dims = [N], axis = 0}
  return %y, %t, %i
}
)";

struct Batch {
  Graph graph = parse_graph(kRows).value();
  std::vector<Tensor> inputs = *random_inputs(graph, 3, {{"N", Dim(7)}});
  std::unique_ptr<BatchModel> model;

  explicit Batch(size_t devices) {
    std::vector<std::string> names;
    for (size_t i = 0; i < devices; ++i) names.push_back(fmt::format("cpu {}", i));
    model = std::make_unique<BatchModel>(graph, *host_target(), CompileOptions(),
                                         BatchOptions{.devices = names, .inputs = {}});
  }
  Result<std::vector<Tensor>> run(Crew& crew) const {
    const auto devices = HONE_TRY(crew.load(HONE_TRY(model->code_for(types_of(inputs)))));
    return devices->run(inputs);
  }
};

TEST(Crew, DividesABatchAsThreadsDo) {
  const RunningWorker a, b;
  const Batch batch(3);
  const std::vector<Tensor> expected = *batch.model->run(batch.inputs);
  const auto crew =
      *Crew::call({{a.address(), 2}, {b.address(), 1}}, tested::kWorkerSecret, kOfHosts);
  EXPECT_THAT(crew->names(),
              testing::ElementsAre(to_string(a.address()) + ", device 0",
                                   to_string(a.address()) + ", device 1", to_string(b.address())));
  for (int i = 0; i < 2; ++i) {
    const auto outputs = batch.run(*crew);
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    for (size_t k = 0; k < expected.size(); ++k)
      EXPECT_TRUE((*outputs)[k].same_bytes(expected[k])) << k;
  }
}

// The cause of a fast second call: no byte of a program travels again.
TEST(Crew, SendsAProgramOnceToEachWorker) {
  RunningWorker a, b;
  const Batch batch(3);
  const auto sent = [&] {
    const auto crew =
        *Crew::call({{a.address(), 2}, {b.address(), 1}}, tested::kWorkerSecret, kOfHosts);
    EXPECT_TRUE(batch.run(*crew).ok());
    std::vector<int64_t> bytes;
    for (const Worker* worker : crew->workers()) bytes.push_back(worker->sent_bytes());
    return bytes;
  };
  EXPECT_THAT(sent(), testing::Each(testing::Gt(1000)));
  EXPECT_THAT(sent(), testing::ElementsAre(0, 0));
  EXPECT_EQ(a.told("sent program"), 2U);  // the place of the rows matters
  EXPECT_EQ(b.told("sent program"), 1U);
}

TEST(Crew, NamesEachWorkerThatDoesNotAnswer) {
  const RunningWorker there;
  CrewOptions options = kOfHosts;
  options.streams.join_seconds = 0.5;
  const std::vector<Host> hosts = {
      {{"127.0.0.1", 1}, 1}, {there.address(), 1}, {{"127.0.0.1", 2}, 1}};
  EXPECT_THAT(Crew::call(hosts, tested::kWorkerSecret, options),
              refuses(ErrorCode::limit, "127.0.0.1:1 ... 127.0.0.1:2"));
}

// A worker that answers, and is gone when it is to meet the other one, which waits for it.
TEST(Crew, EndsAtOnceWhereAWorkerIsLostWhileTheyMeet) {
  const RunningWorker there({.version = "", .streams = {.join_seconds = 20}});
  const TcpListener listener = *TcpListener::open();
  const HostPort lost = {"127.0.0.1", listener.port()};
  std::thread worker([&] {
    const TcpGroup group = {.group = {kWorkerDevice, {1, 1}},
                            .addresses = {lost, {}},
                            .secret = tested::kWorkerSecret,
                            .run = kWorkerProtocol};
    const auto joined = join_tcp(listener, group, {});
    ASSERT_TRUE(joined.ok()) << joined.error().to_string();
    Talk talk(**joined, kWorkerDevice);
    EXPECT_TRUE(talk.say(greeting_of(tested::kWorkerVersion, *host_instructions(), 1), "").ok());
    WorkerRequest request;
    EXPECT_TRUE(talk.hear(request, "").ok());
  });
  const auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  {
    const auto crew =
        Crew::call({{there.address(), 1}, {lost, 2}}, tested::kWorkerSecret, kOfHosts).value();
    const Clock::time_point begin = Clock::now();
    EXPECT_THAT(crew->load(long_programs()), refuses(ErrorCode::limit, to_string(lost)));
    EXPECT_LT(seconds(begin), 2);
  }
  worker.join();
  // The other one has given up, and takes the next caller.
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(there.call()->name(), to_string(there.address()));
  EXPECT_LT(seconds(begin), 2);
}

TEST(Crew, RefusesMoreDevicesThanThereMayBe) {
  const std::vector<Host> hosts = {{{"127.0.0.1", 1}, 200}, {{"127.0.0.1", 2}, 57}};
  EXPECT_THAT(Crew::call(hosts, tested::kWorkerSecret, kOfHosts),
              refuses(ErrorCode::limit, "257 devices ... 256"));
}

TEST(Crew, RefusesRanksThatDiffer) {
  const auto expect = [](const CrewOptions& other, ErrorCode code, const std::string& words) {
    const tested::JoinGroup join = tested::by_shared_memory({1, 1});
    std::thread rank([&] {
      const auto group = join(1);
      ASSERT_TRUE(group.ok());
      EXPECT_FALSE(serve_rank(**group, other).ok());
    });
    EXPECT_THAT(Crew::lead(*join(0), "rank", kOptions), refuses(code, words));
    rank.join();
  };
  expect({.version = "9.9.9", .work = 7}, ErrorCode::unsupported, "process ... 9.9.9 ... 1.2.3");
  expect({.version = "1.2.3", .work = 8}, ErrorCode::bad_input, "process ... command line");
}

// ---- No threads
// --------------------------------------------------------

std::string text_of(const Status& status) { return status.ok() ? "" : status.error().to_string(); }

TEST(NoThreads, AreToldByAWatch) {
  if (kUnderAsan) GTEST_SKIP() << "it has memory of its own";
  EXPECT_THAT(tested::without_threads([] {
                const auto made = Watch::make([] { return true; });
                return text_of(made.ok() ? Status() : Status(made.error()));
              }),
              testing::HasSubstr("no thread"));
}

TEST(NoThreads, AreToldByACrew) {
  if (kUnderAsan) GTEST_SKIP() << "it has memory of its own";
  EXPECT_THAT(tested::without_threads([] {
                const auto made =
                    Crew::call({{{"127.0.0.1", 1}, 1}}, tested::kWorkerSecret, kOfHosts);
                return text_of(made.ok() ? Status() : Status(made.error()));
              }),
              testing::HasSubstr("no thread"));
  EXPECT_THAT(tested::without_threads([] {
                const auto made = Crew::lead(make_thread_transport(1).value(), "rank", kOptions);
                return text_of(made.ok() ? Status() : Status(made.error()));
              }),
              testing::HasSubstr("no thread"));
}

// ---- Processes that are killed or stopped
// --------------------------------------------------------

// Runs again and again, and tells how that ended, and how long after the last good run.
void run_until_lost(const std::function<Result<std::shared_ptr<Crew>>()>& make, const Tell& tell) {
  Clock::time_point last = Clock::now();
  const auto run = [&]() -> Status {
    const auto crew = HONE_TRY(make());
    const auto devices = HONE_TRY(crew->load(long_programs()));
    const std::vector<Tensor> inputs = {joined(long_case().inputs, 0, devices->inputs()[0].type)};
    while (true) {
      HONE_TRY(devices->run(inputs));
      last = Clock::now();
    }
  };
  const Error error = run().error();
  const double seconds = std::chrono::duration<double>(Clock::now() - last).count();
  tell(fmt::format("{} {:.2f} {}", static_cast<int>(error.code()), seconds, error.to_string()));
}

// The caller, which is the first work, ends in time by the code of a lost peer, and names the one.
void expect_loss(std::vector<ForkedWork> works, size_t victim, int signal, int64_t microseconds,
                 std::string_view named) {
  const ForkedWork work = works[victim];
  works[victim] = [&](const Tell& tell) {
    std::thread([=] {
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
      kill(getpid(), signal);
    }).detach();
    work(tell);
  };
  std::vector<std::string> told(works.size());
  const auto ends = run_forked(works, {.silence_seconds = 9},
                               [&](size_t i, std::string_view text) { told[i] = text; });
  ASSERT_TRUE(ends.ok());
  for (size_t i = 0; i < works.size(); ++i) {
    if (i == victim) continue;
    EXPECT_TRUE((*ends)[i].is_done()) << i << ": signal " << (*ends)[i].signal;
    EXPECT_THAT(told[i], says(fmt::format("5 ... {}", named))) << i;
    const std::vector<std::string_view> words = split_words(told[i]);
    ASSERT_GE(words.size(), 2U);
    EXPECT_LT(*parse_double(words[1]), 5) << told[i];
  }
}

// All ranks tell how they ended.
void expect_lost_rank(const tested::JoinGroup& join, size_t victim, int signal,
                      int64_t microseconds) {
  (void)long_programs();
  std::vector<ForkedWork> works = {[&](const Tell& tell) {
    const auto lead = [&]() -> Result<std::shared_ptr<Crew>> {
      std::unique_ptr<Transport> group = HONE_TRY(join(0));
      return Crew::lead(std::move(group), "rank", kOptions);
    };
    run_until_lost(lead, tell);
  }};
  for (int32_t i = 1; i < 3; ++i)
    works.emplace_back([&, i](const Tell& tell) {
      const auto serve = [&]() -> Status { return serve_rank(*HONE_TRY(join(i)), kOptions); };
      const Status served = serve();
      tell(fmt::format("{} 0 {}", served.ok() ? 0 : static_cast<int>(served.error().code()),
                       served.ok() ? "" : served.error().to_string()));
    });
  expect_loss(std::move(works), victim, signal, microseconds, "");
}

// A worker of several; all that ends is the caller's work.
void expect_lost_worker(size_t victim, int signal, int64_t microseconds,
                        const StreamOptions& streams) {
  (void)long_programs();
  std::vector<TcpListener> listeners;
  std::vector<Host> hosts;
  for (int i = 0; i < 2; ++i) {
    listeners.push_back(*TcpListener::open());
    hosts.push_back({{"127.0.0.1", listeners.back().port()}, i + 1});
  }
  CrewOptions options = kOfHosts;
  options.streams = streams;
  std::vector<ForkedWork> works = {[&](const Tell& tell) {
    run_until_lost([&] { return Crew::call(hosts, tested::kWorkerSecret, options); }, tell);
    tell("");
  }};
  std::string told;
  for (size_t i = 0; i < 2; ++i)
    works.emplace_back([&, i](const Tell&) {
      CancelToken cancel;
      std::thread([&, i] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        if (i + 1 == victim) kill(getpid(), signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(5500));
        cancel.cancel();
      }).detach();
      (void)run_worker(
          listeners[i], tested::kWorkerSecret,
          {.version = tested::kWorkerVersion, .threads = 1, .streams = streams, .cancel = &cancel});
    });
  const auto ends = run_forked(works, {.silence_seconds = 9}, [&](size_t i, std::string_view text) {
    if (i == 0 && !text.empty()) told = text;
  });
  ASSERT_TRUE(ends.ok());
  EXPECT_THAT(told, says(fmt::format("5 ... {}", to_string(hosts[victim - 1].address))));
  EXPECT_LT(*parse_double(split_words(told).at(1)), 5) << told;
}

void expect_losses(uint64_t seed, int count) {
  Rng rng(seed);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<int32_t> devices = {1, 1, 1};
    const auto victim = static_cast<size_t>(rng.between(0, 2));
    const int64_t microseconds = rng.between(0, 400000);
    expect_lost_rank(i % 2 == 0 ? tested::by_shared_memory(devices, {.join_seconds = 3})
                                : tested::by_tcp(devices, {.join_seconds = 3}),
                     victim, SIGKILL, microseconds);
  }
}

TEST(LostRank, EndsAllOthersWhenItIsKilled) { expect_losses(5, 4); }
TEST(LostRank, DISABLED_SweepOfKills) { expect_losses(6, 300); }

TEST(LostRank, EndsAllOthersWhenItIsStopped) {
  const StreamOptions streams = {.beat_seconds = 0.1, .silence_seconds = 1, .join_seconds = 3};
  expect_lost_rank(tested::by_shared_memory({1, 1, 1}, streams), 1, SIGSTOP, 400000);
}

TEST(LostWorkers, EndTheirCallerWhenOneIsKilled) {
  expect_lost_worker(2, SIGKILL, 300000, {.join_seconds = 3});
}
TEST(LostWorkers, DISABLED_SweepOfKills) {
  Rng rng(8);
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i)
    expect_lost_worker(static_cast<size_t>(rng.between(1, 2)), SIGKILL, rng.between(0, 400000),
                       {.join_seconds = 3});
}

}  // namespace
}  // namespace hone::HONE_FILE
