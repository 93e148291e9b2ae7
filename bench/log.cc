// What the log takes: to find whether a candidate is measured already, and to keep what was.

#include "log/log.h"

#include <benchmark/benchmark.h>

#include <filesystem>

#include "base/file.h"
#include "base/hash.h"

namespace hone::HONE_FILE {
namespace {

// Of a tuner: kernels with some hundred choices each, ten samples.
Record record(uint64_t i) {
  return {
      .kind = "kernel",
      .subject = i / 300,
      .choice = fmt::format("{{algorithm = gemm, order = [0, 1], lanes = [1:16], tile = {}}}", i),
      .code = hash_mix(i),
      .target = 7,
      .conditions = "threads=1 cache=warm code=full protocol=1",
      .seconds = std::vector<double>(10, 1e-6),
      .version = "0.1.0",
      .time = 1'700'000'000};
}

// A log of so many records, made once, in a folder below the one where the benchmark runs.
Log& filled(int64_t records) {
  struct Filled {
    TempDir folder = TempDir::create(std::filesystem::current_path()).value();
    std::unique_ptr<Log> log = Log::open((folder.path() / "log.db").native()).value();
  };
  static std::map<int64_t, Filled> all;
  const auto [at, is_new] = all.try_emplace(records);
  Log& log = *at->second.log;
  if (!is_new) return log;
  LogMerge rows(log);
  for (int64_t i = 0; i < records; ++i)
    HONE_CHECK(rows.take(record(static_cast<uint64_t>(i))).ok());
  HONE_CHECK(log.know("kernel", 1, "kernel {}").ok() && rows.finish().ok());
  return log;
}

void find_by_code(benchmark::State& state) {
  Log& log = filled(state.range(0));
  const auto count = static_cast<uint64_t>(state.range(0));
  uint64_t next = 0;
  for (auto _ : state) {
    const Record wanted = record(hash_mix(++next) % count);
    const auto found =
        log.find({.code = wanted.code, .target = wanted.target, .conditions = wanted.conditions});
    HONE_CHECK(found.ok() && found->size() == 1);
  }
}
BENCHMARK(find_by_code)->Arg(1000)->Arg(300'000)->Unit(benchmark::kMicrosecond);

void miss_by_code(benchmark::State& state) {
  Log& log = filled(state.range(0));
  uint64_t next = 0;
  for (auto _ : state) HONE_CHECK(log.find({.code = ++next, .target = 7}).value().empty());
}
BENCHMARK(miss_by_code)->Arg(300'000)->Unit(benchmark::kMicrosecond);

void find_by_subject(benchmark::State& state) {  // 300 records
  Log& log = filled(30'000);
  uint64_t next = 0;
  for (auto _ : state)
    HONE_CHECK(log.find({.subject = next++ % 100, .target = 7}).value().size() == 300);
}
BENCHMARK(find_by_subject)->Unit(benchmark::kMicrosecond);

void know_what_is_known(benchmark::State& state) {
  Log& log = filled(1000);
  for (auto _ : state) HONE_CHECK(log.know("kernel", 1, "kernel {}").ok());
}
BENCHMARK(know_what_is_known)->Unit(benchmark::kMicrosecond);

// Until the disk has it.
void add(benchmark::State& state) {
  Log& log = filled(1000);
  std::vector<Record> batch;
  for (int64_t i = 0; i < state.range(0); ++i)
    batch.push_back(record(1000 + static_cast<uint64_t>(i)));
  for (auto _ : state) HONE_CHECK(log.add(batch).ok());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(add)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond)->UseRealTime();

void survey(benchmark::State& state) {
  Log& log = filled(300'000);
  for (auto _ : state) HONE_CHECK(log.groups().value().size() == 1000);
}
BENCHMARK(survey)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone::HONE_FILE
