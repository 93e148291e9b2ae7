// What it costs to start and join the threads of compiled models, and to launch their kernels.
// Samples are taken one by one: the low ones tell what it costs, the others what else ran.

#include <benchmark/benchmark.h>
#include <elf.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/team.h"
#include "runtime/executable.h"

namespace hone::HONE_FILE {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Times `work` once an iteration; counters tell how the samples spread, in nanoseconds.
template <class Work>
void sample(benchmark::State& state, const Work& work) {
  std::vector<double> samples;
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    work();
    samples.push_back(seconds_since(begin));
    state.SetIterationTime(samples.back());
  }
  std::sort(samples.begin(), samples.end());
  const auto percentile = [&](size_t p) { return 1e9 * samples[samples.size() * p / 100]; };
  state.counters["p10_ns"] = percentile(10);
  state.counters["median_ns"] = percentile(50);
  state.counters["p90_ns"] = percentile(90);
}

// A job of two parts that wait for each other, so that both threads take part: the time to start a
// worker and to see it end. Spinning, and with a worker that sleeps.
void fork_join(benchmark::State& state) {
  const auto spin = std::chrono::microseconds(state.range(0));
  const std::shared_ptr<Team> team = Team::create({.threads = 2, .spin = spin}).value();
  std::atomic<uint64_t> arrived = 0;
  uint64_t jobs = 0;
  sample(state, [&] {
    ++jobs;
    team->run(2, 2, [&](int64_t, int64_t, int64_t) noexcept {
      arrived.fetch_add(1);
      while (arrived.load() < 2 * jobs) {
      }
    });
  });
}
BENCHMARK(fork_join)->ArgName("spin_us")->Arg(10000)->Arg(0)->UseManualTime();

// A job of two parts of some microseconds each. Beyond the time of a part is what the team costs,
// where two cores are free.
void busy_parts(benchmark::State& state) {
  const std::shared_ptr<Team> team = Team::create({.threads = 2}).value();
  sample(state, [&] {
    team->run(2, 2, [&](int64_t begin, int64_t end, int64_t) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const Clock::time_point start = Clock::now();
        while (seconds_since(start) < 1e-6 * static_cast<double>(state.range(0))) {
        }
      }
    });
  });
}
BENCHMARK(busy_parts)->ArgName("part_us")->Arg(1)->Arg(10)->Arg(100)->UseManualTime();

// ---- Commands ----------------------------------------------------------------------------------

// An object with one function, "f", which returns at once.
std::string empty_object() {
  constexpr std::string_view kNames("\0f\0.text\0", 9);
  struct {
    Elf64_Ehdr header = {};
    Elf64_Shdr sections[4] = {};  // none, code, symbols, names
    Elf64_Sym symbols[2] = {};
    char names[16] = {};
    uint8_t code[8] = {0xc3};  // ret
  } file;
  std::memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_ident[EI_DATA] = ELFDATA2LSB;
  file.header.e_type = ET_REL;
  file.header.e_machine = EM_X86_64;
  file.header.e_shoff = offsetof(decltype(file), sections);
  file.header.e_shentsize = sizeof(Elf64_Shdr);
  file.header.e_shnum = std::size(file.sections);
  file.header.e_shstrndx = 3;
  Elf64_Shdr& code = file.sections[1];
  code.sh_name = 3;
  code.sh_type = SHT_PROGBITS;
  code.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  code.sh_offset = offsetof(decltype(file), code);
  code.sh_size = sizeof file.code;
  Elf64_Shdr& symbols = file.sections[2];
  symbols.sh_type = SHT_SYMTAB;
  symbols.sh_offset = offsetof(decltype(file), symbols);
  symbols.sh_size = sizeof file.symbols;
  symbols.sh_link = 3;
  symbols.sh_entsize = sizeof(Elf64_Sym);
  Elf64_Shdr& names = file.sections[3];
  names.sh_type = SHT_STRTAB;
  names.sh_offset = offsetof(decltype(file), names);
  names.sh_size = sizeof file.names;
  file.symbols[1].st_name = 1;
  file.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  file.symbols[1].st_shndx = 1;
  std::memcpy(file.names, kNames.data(), kNames.size());
  return std::string(reinterpret_cast<const char*>(&file), sizeof file);
}

// An image of so many equal commands, from and to one byte.
Image image_of(image::Command command, int64_t count) {
  const Type type = Type::get(DType::i8, {1});
  Image image = {.name = "commands"};
  image.inputs = {{"x", type}};
  image.outputs = {{"y", type}};
  image.commands.assign(static_cast<size_t>(count), std::move(command));
  return image;
}

void run(benchmark::State& state, const Image& image) {
  const std::shared_ptr<const Executable> executable = Executable::load(image).value();
  int8_t x = 1, y = 0;
  const void* inputs[] = {&x};
  void* outputs[] = {&y};
  for (auto _ : state) {
    if (!executable->run(inputs, outputs).ok()) state.SkipWithError("the run failed");
  }
}

// What a run costs, and each of its commands: 0 of them, or a thousand.
void copies(benchmark::State& state) {
  using image::Place;
  const image::Copy copy = {{Place::Region::input, 0, 0, 1, {}},
                            {Place::Region::output, 0, 0, 1, {}}};
  run(state, image_of({"copy", copy}, state.range(0)));
}
BENCHMARK(copies)->Arg(0)->Arg(1000);

// Kernels that do nothing, of two phases each.
void empty_launches(benchmark::State& state) {
  Image image = image_of({"launch", image::Launch{}}, state.range(0));
  const auto object = std::make_shared<const std::string>(empty_object());
  image.kernels = {{"empty", object, {{"f", 1, false}, {"f", 1, true}}, 0}};
  run(state, image);
}
BENCHMARK(empty_launches)->Arg(1000);

}  // namespace
}  // namespace hone::HONE_FILE
