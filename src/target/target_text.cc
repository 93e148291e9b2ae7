#include "target/target_text.h"
#include "base/text.h"
#include "target/multipliers.h"
#include "target/target.h"
#include "target/text_fields.h"

#include <set>

namespace hone {
namespace {

constexpr Unit kWatts[] = {{"mW", -3}, {"W", 0}, {"uW", -6}, {"nW", -9}};
constexpr Unit kAreas[] = {{"um2", 0}, {"mm2", 6}};

class TargetParser {
 public:
  explicit TargetParser(FieldReader& in) : in_(in) {}

  Result<Target> parse() {
    const size_t begin = in_.offset();
    HONE_TRY(in_.expect("target"));
    target_.name = HONE_TRY(in_.string("the target's name in quotes"));
    HONE_TRY(in_.expect("{"));
    HONE_TRY(in_.end_of_line());
    while (in_.peek() != "}") HONE_TRY(field());
    in_.take();
    if (seen_.contains("gpu") && seen_.contains("isa"))
      return in_.at(begin, bad_input("the target says both its isa and its gpu"));
    for (std::string_view key : {seen_.contains("gpu") ? "gpu" : "isa", "cores", "cache", "memory",
                                 "peak f64", "peak f32", "fork_join"})
      if (!seen_.contains(std::string(key)))
        return in_.at(begin, bad_input("the target does not say its {}", key));
    if (Status good = check(target_); !good.ok()) return in_.at(begin, std::move(good).error());
    return std::move(target_);
  }
  std::vector<MultiplierLine> take_multipliers() { return std::move(multipliers_); }

 private:
  // ---- Fields

  Status field() {
    const size_t offset = in_.offset();
    const std::string_view key = in_.peek();
    if (key.empty()) return in_.expected("'}'");
    if (find(key) == nullptr)
      return in_.at(
          offset,
          bad_input("there is no field '{}'", excerpt(key)).with_hint(did_you_mean(key, names())));
    in_.take();
    std::string full(key);
    if (key == "peak") {
      const size_t place = in_.offset();
      const std::string_view type = in_.take();
      const std::optional<DType> dtype = dtype_from_name(type);
      if (!dtype) return in_.at(place, bad_input("'{}' is not an element type", excerpt(type)));
      peak_ = *dtype;
      full = fmt::format("peak {}", type);
    }
    if (!seen_.insert(full).second && key != "cache" && key != "multiplier")
      return in_.at(offset, bad_input("{} is given twice", full));
    HONE_TRY(in_.expect("="));
    HONE_TRY((this->*find(key)->read)());
    return in_.end_of_line();
  }

  Status read_cpu() {
    target_.cpu = HONE_TRY(in_.string("the processor's name in quotes"));
    return {};
  }

  Status read_isa() {
    const size_t offset = in_.offset();
    const std::string_view level = in_.take();
    const std::optional<Isa> isa = isa_from_name(level);
    if (!isa) return in_.at(offset, unknown_name("level", level, std::span(kIsas)));
    target_.isa = *isa;
    while (in_.peek() == "+") {
      in_.take();
      const size_t place = in_.offset();
      const std::string_view word = in_.take();
      const std::optional<Extension> extension = extension_from_name(word);
      if (!extension) return in_.at(place, unknown_name("extension", word, std::span(kExtensions)));
      target_.extensions.insert(*extension);
    }
    return {};
  }

  // sm_90, 64 warps, 65536 registers, 228 KiB shared, 227 KiB a block, 0.6 us a launch
  Status read_gpu() {
    const size_t offset = in_.offset();
    Gpu gpu;
    std::string_view digits = in_.take();
    const bool is_named = consume_prefix(digits, "sm_");
    const Result<int64_t> number = parse_int(digits);
    if (!is_named || !number.ok())
      return in_.at(offset, bad_input("a GPU's capability is written like sm_90"));
    gpu.capability = *number;
    HONE_TRY(in_.expect(","));
    gpu.warps = HONE_TRY(in_.integer(1, kMaxGpuWarps));
    for (std::string_view word : {"warps", ","}) HONE_TRY(in_.expect(word));
    gpu.registers = HONE_TRY(in_.integer(1, kMaxGpuRegisters));
    for (std::string_view word : {"registers", ","}) HONE_TRY(in_.expect(word));
    gpu.shared_bytes = HONE_TRY(in_.bytes(kMaxGpuShared));
    for (std::string_view word : {"shared", ","}) HONE_TRY(in_.expect(word));
    gpu.block_shared_bytes = HONE_TRY(in_.bytes(kMaxGpuShared));
    for (std::string_view word : {"a", "block", ","}) HONE_TRY(in_.expect(word));
    gpu.launch = HONE_TRY(in_.quantity(kSeconds, 0, kMaxGpuLaunch));
    for (std::string_view word : {"a", "launch"}) HONE_TRY(in_.expect(word));
    target_.gpu = gpu;
    return {};
  }

  Status read_cores() {
    target_.cores = HONE_TRY(in_.integer(1, kMaxTargetCores));
    return {};
  }

  Status read_cache() {
    if (target_.caches.size() == kMaxCacheLevels)
      return in_.at(in_.offset(), over_limit("more than {} cache levels", kMaxCacheLevels));
    CacheLevel cache;
    cache.bytes = HONE_TRY(in_.bytes(kMaxTargetBytes));
    HONE_TRY(in_.expect("for"));
    cache.cores = HONE_TRY(in_.integer(1, kMaxTargetCores));
    if (in_.peek() != "core")
      HONE_TRY(in_.expect("cores"));
    else
      in_.take();
    HONE_TRY(in_.expect("at"));
    cache.bytes_per_second = HONE_TRY(in_.quantity(kBandwidths, kMinTargetRate, kMaxTargetRate));
    target_.caches.push_back(cache);
    return {};
  }

  Status read_memory() {
    target_.memory_bytes = HONE_TRY(in_.bytes(kMaxTargetBytes));
    HONE_TRY(in_.expect("at"));
    target_.memory_one_core = HONE_TRY(in_.quantity(kBandwidths, kMinTargetRate, kMaxTargetRate));
    for (std::string_view word : {"a", "core", ","}) HONE_TRY(in_.expect(word));
    target_.memory_all_cores = HONE_TRY(in_.quantity(kBandwidths, kMinTargetRate, kMaxTargetRate));
    HONE_TRY(in_.expect("in"));
    return in_.expect("all");
  }

  Status read_peak() {
    target_.peak(peak_) = HONE_TRY(in_.quantity(kOperations, kMinTargetRate, kMaxTargetRate));
    return {};
  }

  Status read_fork_join() {
    target_.fork_join = HONE_TRY(in_.quantity(kSeconds, 0, kMaxForkJoin));
    return {};
  }

  // "mul8s_1L2H", signed, 0.301 mW, 558.9 um2, "mul8s_1L2H.npy"
  Status read_multiplier() {
    if (multipliers_.size() == kMaxMultipliers)
      return in_.at(in_.offset(), over_limit("more than {} multipliers", kMaxMultipliers));
    MultiplierLine line;
    const size_t begin = in_.offset();
    line.name = HONE_TRY(in_.string("the multiplier's name in quotes"));
    for (const MultiplierLine& other : multipliers_)
      if (other.name == line.name)
        return in_.at(begin, bad_input("the multiplier '{}' is given twice", excerpt(line.name)));
    HONE_TRY(in_.expect(","));
    if (in_.peek() != "signed" && in_.peek() != "unsigned")
      return in_.expected("'signed' or 'unsigned'");
    line.is_signed = in_.take() == "signed";
    HONE_TRY(in_.expect(","));
    line.power = HONE_TRY(in_.quantity(kWatts, 0, kMaxMultiplierPower));
    HONE_TRY(in_.expect(","));
    line.area = HONE_TRY(in_.quantity(kAreas, 0, kMaxMultiplierArea));
    HONE_TRY(in_.expect(","));
    line.products = HONE_TRY(in_.string("the file of its products in quotes"));
    multipliers_.push_back(std::move(line));
    return {};
  }

  Status read_measured() {
    if (in_.peek() != "true" && in_.peek() != "false") return in_.expected("'true' or 'false'");
    target_.measured = in_.take() == "true";
    return {};
  }

  struct Field {
    std::string_view name;
    Status (TargetParser::*read)();
  };
  static std::span<const Field> fields() {
    static constexpr Field all[] = {{"cpu", &TargetParser::read_cpu},
                                    {"gpu", &TargetParser::read_gpu},
                                    {"isa", &TargetParser::read_isa},
                                    {"cores", &TargetParser::read_cores},
                                    {"cache", &TargetParser::read_cache},
                                    {"memory", &TargetParser::read_memory},
                                    {"peak", &TargetParser::read_peak},
                                    {"fork_join", &TargetParser::read_fork_join},
                                    {"multiplier", &TargetParser::read_multiplier},
                                    {"measured", &TargetParser::read_measured}};
    return all;
  }
  static const Field* find(std::string_view key) {
    for (const Field& field : fields())
      if (field.name == key) return &field;
    return nullptr;
  }
  static std::vector<std::string_view> names() {
    std::vector<std::string_view> names;
    for (const Field& field : fields()) names.push_back(field.name);
    return names;
  }

  FieldReader& in_;
  Target target_;
  std::vector<MultiplierLine> multipliers_;
  DType peak_ = DType::f32;  // of the field at hand
  std::set<std::string> seen_;
};

std::string gpu_line(const Gpu& gpu) {
  return fmt::format("  gpu = sm_{}, {} warps, {} registers, {} shared, {} a block, {} a launch",
                     gpu.capability, gpu.warps, gpu.registers, bytes_text(gpu.shared_bytes),
                     bytes_text(gpu.block_shared_bytes), with_unit(gpu.launch, kSeconds[0]));
}

}  // namespace

std::string print(const Target& target) {
  std::string out = fmt::format("target {} {{\n", hone::quoted(target.name));
  if (!target.cpu.empty()) out += fmt::format("  cpu = {}\n", hone::quoted(target.cpu));
  if (target.gpu) {
    out += gpu_line(*target.gpu);
  } else {
    out += fmt::format("  isa = {}", name(target.isa));
    for (Extension e : kExtensions)
      if (target.extensions.contains(e)) out += fmt::format(" + {}", name(e));
  }
  out += fmt::format("\n  cores = {}\n", target.cores);
  for (const CacheLevel& cache : target.caches)
    out += fmt::format("  cache = {} for {} {} at {}\n", bytes_text(cache.bytes), cache.cores,
                       cache.cores == 1 ? "core" : "cores",
                       with_unit(cache.bytes_per_second, kBandwidths[0]));
  out += fmt::format("  memory = {} at {} a core, {} in all\n", bytes_text(target.memory_bytes),
                     with_unit(target.memory_one_core, kBandwidths[0]),
                     with_unit(target.memory_all_cores, kBandwidths[0]));
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType type = static_cast<DType>(i);
    if (target.peak(type) != 0)
      out +=
          fmt::format("  peak {} = {}\n", name(type), with_unit(target.peak(type), kOperations[0]));
  }
  out += fmt::format("  fork_join = {}\n", with_unit(target.fork_join, kSeconds[0]));
  return out + fmt::format("  measured = {}\n}}\n", target.measured);
}

namespace {

struct TextOfTarget {
  Target target;
  std::vector<MultiplierLine> multipliers;
};
Result<TextOfTarget> parse_all(std::string_view text, std::string_view file) {
  if (text.size() > kMaxTargetText)
    return over_limit("the text of a target has {} bytes, more than {}", text.size(),
                      kMaxTargetText)
        .within(file);
  FieldReader in(text, file);
  in.skip_empty_lines();
  TargetParser parser(in);
  TextOfTarget all = {.target = HONE_TRY(parser.parse()), .multipliers = {}};
  all.multipliers = parser.take_multipliers();
  in.skip_empty_lines();
  if (!in.peek().empty()) return in.expected("the end of the text");
  return all;
}

}  // namespace

Result<Target> read_target(FieldReader& in) { return TargetParser(in).parse(); }

Result<Target> parse_target(std::string_view text, std::string_view file) {
  return HONE_TRY(parse_all(text, file)).target;
}

Result<std::vector<MultiplierLine>> parse_multipliers(std::string_view text,
                                                      std::string_view file) {
  return HONE_TRY(parse_all(text, file)).multipliers;
}

}  // namespace hone
