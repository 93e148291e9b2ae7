#include "session/file_cubins.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/thread_pool.h"

namespace hone {

namespace {

constexpr int64_t kMostCubin = 64 << 20;  // bytes

// Each text of PTX once, by the GPUs that it is to be for.
struct Wanted {
  std::string ptx;
  int64_t capability = 0;
  bool is_exact = false;
  auto operator<=>(const Wanted&) const = default;
};

// `capability_for` says for which GPUs a program's kernels are wanted; 0: for none.
template <class CapabilityFor>
std::vector<Wanted> wanted_of(std::span<const HonecProgram> programs,
                              const CapabilityFor& capability_for) {
  std::vector<Wanted> all;
  for (const HonecProgram& program : programs)
    if (const int64_t capability = capability_for(program); capability != 0)
      for (const GpuKernel& kernel : program.gpu)
        if (!kernel.ptx.empty()) all.push_back({kernel.ptx, capability, kernel.is_exact});
  std::ranges::sort(all);
  const auto same = std::ranges::unique(all);
  all.erase(same.begin(), same.end());
  return all;
}

bool runs_on(const HonecProgram& program, int64_t capability) {
  return program.capability != 0 && std::ranges::all_of(program.gpu, [&](const GpuKernel& kernel) {
           return kernel.ptx.empty() || hone::runs_on(kernel, capability);
         });
}

Result<std::string> assembled(const PtxAssembler& assembler, const Wanted& wanted,
                              const std::filesystem::path& file) {
  const std::string ptx = file.string() + ".ptx", cubin = file.string() + ".cubin";
  HONE_TRY(write_file_atomic(ptx, wanted.ptx));
  const std::string chip = fmt::format("sm_{}{}", wanted.capability, wanted.is_exact ? "a" : "");
  const ProcessResult done =
      HONE_TRY(run_process(assembler.path, {"-arch=" + chip, ptx, "-o", cubin}));
  if (done.exit_code != 0 || done.signal != 0)
    return unsupported("{} refuses a kernel for {}: {}", assembler.path, chip,
                       excerpt(done.err + done.out));
  return read_file(cubin, kMostCubin);
}

}  // namespace

Result<PtxAssembler> ptx_assembler(const std::string& path) {
  const ProcessResult told = HONE_TRY(run_process(path, {"--version"}));
  constexpr std::string_view kRelease = "release ";
  const size_t at = told.out.find(kRelease);
  if (at != std::string::npos) {
    const std::string_view rest = std::string_view(told.out).substr(at + kRelease.size());
    const std::vector<std::string_view> numbers =
        split(rest.substr(0, rest.find_first_not_of("0123456789.")), '.');
    if (numbers.size() == 2) {
      const Result<int64_t> major = parse_int(numbers[0]), minor = parse_int(numbers[1]);
      if (major.ok() && minor.ok()) return PtxAssembler{path, 1000 * *major + 10 * *minor};
    }
  }
  return unsupported("{} does not say its version", path);
}

Result<std::vector<PtxCubin>> cubins_by(const CudaDevice& device,
                                        std::span<const HonecProgram> programs,
                                        const CubinStore& store) {
  int64_t best = 0;
  for (const HonecProgram& program : programs)
    if (runs_on(program, device.capability())) best = std::max(best, program.capability);
  const std::vector<Wanted> all = wanted_of(programs, [&](const HonecProgram& program) {
    return best != 0 && program.capability == best ? device.capability() : 0;
  });
  std::vector<PtxText> texts;
  for (const Wanted& one : all) texts.push_back({one.ptx, one.is_exact});
  std::vector<std::string> made = HONE_TRY(make_cubins(device, texts, store));
  std::vector<PtxCubin> cubins;
  for (size_t i = 0; i < all.size(); ++i)
    cubins.push_back(
        {all[i].ptx, device.capability(), device.driver().version(), std::move(made[i])});
  return cubins;
}

Result<std::vector<PtxCubin>> cubins_by(const PtxAssembler& assembler,
                                        std::span<const HonecProgram> programs,
                                        const std::filesystem::path& scratch) {
  const std::vector<Wanted> all =
      wanted_of(programs, [](const HonecProgram& program) { return program.capability; });
  const TempDir folder = HONE_TRY(TempDir::create(scratch));
  std::vector<std::optional<Result<std::string>>> made(all.size());
  default_pool().parallel_for(
      0, static_cast<int64_t>(all.size()), 1, [&](int64_t from, int64_t to) {
        for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
          made[i] = assembled(assembler, all[i], folder.path() / std::to_string(i));
      });
  std::vector<PtxCubin> cubins;
  for (size_t i = 0; i < all.size(); ++i)
    cubins.push_back({all[i].ptx, all[i].capability, assembler.version,
                      HONE_TRY(*std::move(made[i]))});
  return cubins;
}

}  // namespace hone
