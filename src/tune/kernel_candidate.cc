#include "tune/kernel_candidate.h"

#include <ctime>

#include "base/hash.h"
#include "base/rng.h"
#include "codegen/kernels.h"
#include "kernel/packed.h"
#include "kernel/prepared.h"
#include "oracle/compare.h"
#include "program/build/kernel.h"
#include "program/frame.h"
#include "program/instantiate.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

constexpr std::string_view kName = "candidate";
constexpr int64_t kLine = 64;  // bytes of a cache line

double now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Result<KernelCandidate> candidate_of(const std::shared_ptr<const KernelBody>& body,
                                     const Schedule& schedule, const Target& target) {
  TileProgram tiles = HONE_TRY(build_kernel(*body, schedule, kName));
  const uint64_t hash = tiles_hash(tiles);
  KernelCandidate candidate{schedule, {hash, std::move(tiles), schedule, body}};
  candidate.code = Hasher().add(kernel_key(candidate.kernel, target)).value();
  return candidate;
}

Result<std::string> object_of(const KernelCandidate& candidate, const Target& target) {
  return compile_tiles(candidate.kernel.tiles, target, kName);
}

Program launch_of(const KernelCandidate& candidate, int64_t threads) {
  const program::Kernel& kernel = candidate.kernel;
  auto frame = std::make_shared<program::Frame>();
  frame->name = kName;
  program::Launch launch;
  const auto add = [&](const TileBuffer& of, std::string name, program::Role role) {
    frame->buffers.push_back({.name = std::move(name), .type = of.type, .role = role});
    return static_cast<program::BufferId>(frame->buffers.size() - 1);
  };
  std::vector<const TileBuffer*> updates;
  for (const TileBuffer& buffer : kernel.tiles.buffers)
    if (buffer.role == BufferRole::update) updates.push_back(&buffer);
  std::vector<program::BufferId> before;
  for (const TileBuffer* buffer : updates)
    before.push_back(add(*buffer, buffer->name + ".before", program::Role::input));
  for (const TileBuffer& buffer : kernel.tiles.buffers)
    if (buffer.role == BufferRole::input)
      launch.inputs.push_back(add(buffer, buffer.name, program::Role::input));
  for (const TileBuffer& buffer : kernel.tiles.buffers)
    if (is_result(buffer.role))
      launch.outputs.push_back(add(buffer, buffer.name, program::Role::output));
  for (size_t i = 0; i < updates.size(); ++i)
    frame->commands.push_back({.name = updates[i]->name,
                               .kind = program::Copy{before[i], launch.outputs[i]},
                               .after = {}});
  frame->commands.push_back({.name = std::string(kName), .kind = launch, .after = {}});
  const std::span<const program::Kernel> kernels(&kernel, 1);
  const auto after = program::dependencies(*frame, kernels);
  for (size_t c = 0; c < after.size(); ++c) frame->commands[c].after = after[c];
  return {.name = std::string(kName), .threads = threads, .kernels = {kernel}, .main = frame};
}

int64_t Operands::bytes() const {
  int64_t bytes = 0;
  for (const Tensor& input : inputs) bytes += input.type().static_bytes();
  for (Type output : outputs) bytes += output.static_bytes();
  return bytes;
}

Result<Operands> random_operands(const KernelBody& body, const Schedule& schedule, uint64_t seed) {
  const std::optional<PreparedInput> prepared = prepared_input(body, schedule);
  Operands operands;
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(body.graph, seed));
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.inputs.push_back(prepared && prepared->parameter == i
                                  ? prepared->value(inputs[i])
                                  : packed(inputs[i], body.inputs[i]));
  for (size_t i = 0; i < body.outputs.size(); ++i)
    operands.outputs.push_back(stored_type(body.outputs[i], body.graph.output_types()[i]));
  return operands;
}

std::string result_difference(std::span<const Tensor> actual, std::span<const Tensor> expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    const Result<Comparison> same =
        compare(actual[i], expected[i], expected_tolerance(expected[i].dtype(), expected[i]));
    if (!same.ok()) return same.error().what();
    if (!same->passed()) return same->to_string();
  }
  return "";
}

Result<OperandPlace> OperandPlace::make(const Operands& operands, uint64_t seed) {
  Rng rng(seed);
  std::vector<int64_t> offsets;
  int64_t end = 0;
  const auto add = [&](int64_t bytes) {
    const int64_t lines = static_cast<int64_t>(rng.below(Memory::kPage / kLine));
    offsets.push_back(end + lines * kLine);
    end = (offsets.back() + bytes + Memory::kPage - 1) / Memory::kPage * Memory::kPage;
  };
  for (const Tensor& input : operands.inputs) add(input.type().static_bytes());
  for (Type output : operands.outputs) add(output.static_bytes());
  OperandPlace place;
  place.memory_ = HONE_TRY(Memory::map(std::max<int64_t>(end, 1)));
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::byte* const at = place.memory_.data() + offsets[i];
    if (i >= operands.inputs.size()) {
      place.outputs_.push_back(at);
      continue;
    }
    const std::span<const std::byte> bytes = operands.inputs[i].bytes();
    std::ranges::copy(bytes, at);
    place.inputs_.push_back(at);
    place.input_bytes_.push_back(static_cast<int64_t>(bytes.size()));
  }
  return place;
}

void OperandPlace::evict(const std::vector<bool>& inputs) const {
  for (size_t i = 0; i < inputs_.size() && i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const auto* const at = static_cast<const char*>(inputs_[i]);
    for (int64_t byte = 0; byte < input_bytes_[i]; byte += kLine) __builtin_ia32_clflush(at + byte);
  }
  __builtin_ia32_mfence();
}

Result<KernelLaunches> KernelLaunches::load(const KernelCandidate& candidate, std::string object,
                                            const Target& target,
                                            const std::shared_ptr<Team>& team) {
  const KernelCode code = {std::make_shared<const std::string>(std::move(object)),
                           phase_symbols(candidate.kernel.tiles, kName), target.instructions()};
  KernelLaunches launches;
  launches.image_ =
      HONE_TRY(instantiate(launch_of(candidate, team->threads()), {}, std::span(&code, 1)));
  launches.load_.team = team;
  HONE_TRY(launches.repeat(1));
  return launches;
}

Status KernelLaunches::repeat(int64_t launches) {
  Image image = image_;
  image::Command launch = std::move(image.commands.back());
  image.commands.back() = {.name = std::string(kName),
                           .kind = image::Repeat{.trips = launches, .body = {std::move(launch)}}};
  image.loops = 1;
  executable_ = HONE_TRY(Executable::load(image, load_));
  launches_ = launches;
  return {};
}

Status KernelLaunches::run(const OperandPlace& place) const {
  return executable_->run(place.inputs(), place.outputs());
}

Result<double> KernelLaunches::seconds(const OperandPlace& place) const {
  const clockid_t clock = image_.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = now(clock);
  HONE_TRY(run(place));
  return (now(clock) - start) / static_cast<double>(launches_);
}

}  // namespace hone
