#include "cost/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/team.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

constexpr std::string_view kFormat = "hone kernel model 4";
constexpr size_t kMaxMembers = 64, kMaxWidth = 1024, kMaxKernels = 1 << 16;

constexpr int64_t kAll = kFeatures, kOfKernel = kKernelFeatures;

std::string hex(uint64_t number) { return fmt::format("{:016x}", number); }

// ---- Writing ------------------------------------------------------------------------------------

class Writer {
 public:
  Safetensors run(const KernelModel& model) {
    for (size_t m = 0; m < model.members.size(); ++m) {
      const ModelMember& member = model.members[m];
      const auto width1 = static_cast<int64_t>(model.width1);
      const auto width2 = static_cast<int64_t>(model.width2);
      const std::string name = fmt::format("member{}/", m);
      add(name + "input", {kAll, width1}, member.input);
      add(name + "bias1", {width1}, member.bias1);
      add(name + "middle", {width1, width2}, member.middle);
      add(name + "bias2", {width2}, member.bias2);
      add(name + "output", {width2}, member.output);
      add(name + "bias3", {1}, std::span(&member.bias3, 1));
    }
    add("low", {kAll}, model.low);
    add("high", {kAll}, model.high);
    add("kernels/mean", {kOfKernel}, model.mean);
    add("kernels/deviation", {kOfKernel}, model.deviation);
    std::vector<float> kernels;
    for (const auto& each : model.kernels) kernels.insert(kernels.end(), each.begin(), each.end());
    const auto count = static_cast<int64_t>(model.kernels.size());
    add("kernels", {count, kOfKernel}, kernels);
    add("kernels/priced", {count}, model.priced);
    auto& metadata = content_.metadata;
    metadata["format"] = kFormat;
    metadata["features"] = feature_version();
    metadata["target"] = model.target;
    metadata["fingerprint"] = hex(model.fingerprint);
    metadata["core"] = hex(model.core);
    metadata["threads"] = std::to_string(model.threads);
    metadata["prices"] = print(model.prices, model.target);
    metadata["reach"] = fmt::format("{}", model.reach);
    metadata["lead"] = fmt::format("{}", model.lead);
    metadata["caution"] = fmt::format("{}", model.caution);
    metadata["programs"] = join(model.programs, "\n");
    std::vector<std::string> lines;
    for (const auto& [what, count] : model.seen) lines.push_back(fmt::format("{} {}", count, what));
    metadata["seen"] = join(lines, "\n");
    lines.clear();
    for (const auto& [kind, level] : model.levels)
      lines.push_back(fmt::format("{} {}", level, kind));
    metadata["levels"] = join(lines, "\n");
    lines.clear();
    for (const RegretBound& bound : model.bounds) {
      std::string line;
      for (double slower : bound.slower) line += fmt::format("{} ", slower);
      lines.push_back(line + (bound.kind.empty() ? "all" : bound.kind));
    }
    metadata["bounds"] = join(lines, "\n");
    metadata["checksum"] = hex(checksum(content_));
    return std::move(content_);
  }

  // The mean of all but itself.
  static uint64_t checksum(const Safetensors& content) {
    Hasher hasher;
    for (const auto& [key, text] : content.metadata)
      if (key != "checksum") hasher.add(std::string_view(key)).add(std::string_view(text));
    for (const NamedTensor& each : content.tensors)
      hasher.add(std::string_view(each.name)).add(each.tensor.bytes());
    return hasher.value();
  }

 private:
  void add(std::string name, std::initializer_list<Dim> dims, std::span<const float> values) {
    content_.tensors.push_back({std::move(name), Tensor::of(Type::get(DType::f32, dims), values)});
  }

  Safetensors content_;
};

// ---- Reading ------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(const Safetensors& content) : content_(content) {}

  Result<KernelModel> run() {
    if (HONE_TRY(text("format")) != kFormat)
      return bad_input("the format is '{}', not '{}'", excerpt(HONE_TRY(text("format"))), kFormat);
    if (HONE_TRY(text("checksum")) != hex(Writer::checksum(content_)))
      return bad_input("the checksum does not fit: the file is damaged");
    if (HONE_TRY(text("features")) != feature_version())
      return bad_input("the model knows features of version {}, this hone has {}",
                       excerpt(HONE_TRY(text("features"))), feature_version())
          .with_hint("'hone train cost' makes a model for this hone");
    model_.target = HONE_TRY(text("target"));
    model_.prices = HONE_TRY(parse_prices(HONE_TRY(text("prices")), model_.target, "prices"));
    model_.fingerprint = HONE_TRY(fingerprint("fingerprint"));
    model_.core = HONE_TRY(fingerprint("core"));
    model_.threads = HONE_TRY(parse_int(HONE_TRY(text("threads"))));
    if (model_.threads < 1 || model_.threads > Team::kMaxThreads)
      return bad_input("{} threads are outside of 1..{}", model_.threads, Team::kMaxThreads);
    model_.reach = HONE_TRY(number("reach"));
    model_.lead = HONE_TRY(number("lead"));
    model_.caution = HONE_TRY(number("caution"));
    const std::string programs = HONE_TRY(text("programs"));
    for (std::string_view program : split(programs, '\n')) model_.programs.emplace_back(program);
    HONE_TRY(seen());
    HONE_TRY(levels());
    HONE_TRY(bounds());
    HONE_TRY(networks());
    HONE_TRY(fill("low", model_.low));
    HONE_TRY(fill("high", model_.high));
    for (size_t f = 0; f < kFeatures; ++f)
      if (!(model_.low[f] <= model_.high[f])) return bad_input("'low' is above 'high'");
    HONE_TRY(fill("kernels/mean", model_.mean));
    HONE_TRY(fill("kernels/deviation", model_.deviation));
    HONE_TRY(kernels());
    return std::move(model_);
  }

 private:
  Result<std::string> text(std::string_view key) const {
    const auto at = content_.metadata.find(std::string(key));
    if (at == content_.metadata.end()) return bad_input("the entry '{}' is missing", key);
    return at->second;
  }

  Result<double> number(std::string_view key) const {
    const double number = HONE_TRY(parse_double(HONE_TRY(text(key))));
    if (!std::isfinite(number) || number < 0)
      return bad_input("the entry '{}' is not a number", key);
    return number;
  }

  Result<uint64_t> fingerprint(std::string_view key) const {
    const std::string digits = HONE_TRY(text(key));
    uint64_t number = 0;
    for (char c : digits) {
      const size_t digit = std::string_view("0123456789abcdef").find(c);
      if (digit == std::string_view::npos || digits.size() != 16)
        return bad_input("the {} '{}' is not 16 hex digits", key, excerpt(digits));
      number = number << 4 | digit;
    }
    return number;
  }

  Status seen() {
    const std::string lines = HONE_TRY(text("seen"));
    if (lines.empty()) return {};  // no kind was in two programs
    for (std::string_view line : split(lines, '\n')) {
      const size_t space = line.find(' ');
      if (space == std::string_view::npos) return bad_input("'{}' is not a count", excerpt(line));
      model_.seen[std::string(line.substr(space + 1))] = HONE_TRY(parse_int(line.substr(0, space)));
    }
    return {};
  }

  Status levels() {
    const std::string lines = HONE_TRY(text("levels"));
    if (lines.empty()) return {};
    for (std::string_view line : split(lines, '\n')) {
      const size_t space = line.find(' ');
      if (space == std::string_view::npos) return bad_input("'{}' is not a level", excerpt(line));
      const double level = HONE_TRY(parse_double(line.substr(0, space)));
      if (!std::isfinite(level)) return bad_input("'{}' is not a level", excerpt(line));
      model_.levels[std::string(line.substr(space + 1))] = level;
    }
    return {};
  }

  Status bounds() {
    const std::string lines = HONE_TRY(text("bounds"));
    if (lines.empty()) return {};  // too few kernels were judged
    for (std::string_view line : split(lines, '\n')) {
      RegretBound bound;
      for (size_t i = 0; i < std::size(kMeasuredCounts); ++i) {
        const size_t space = line.find(' ');
        if (space == std::string_view::npos) return bad_input("'{}' is not a bound", excerpt(line));
        bound.slower.push_back(HONE_TRY(parse_double(line.substr(0, space))));
        if (!(bound.slower.back() >= 0)) return bad_input("'{}' is not a bound", excerpt(line));
        line.remove_prefix(space + 1);
      }
      if (line != "all") bound.kind = line;
      model_.bounds.push_back(std::move(bound));
    }
    return {};
  }

  Result<std::span<const float>> numbers(const std::string& name,
                                         std::initializer_list<Dim> dims) const {
    const Tensor* tensor = content_.find(name);
    if (tensor == nullptr) return bad_input("the tensor '{}' is missing", name);
    const Type type = Type::get(DType::f32, dims);
    if (tensor->type() != type)
      return bad_input("the tensor '{}' is {}, not {}", name, tensor->type().to_string(),
                       type.to_string());
    for (float each : tensor->as<float>())
      if (!std::isfinite(each))
        return bad_input("the tensor '{}' has an element that is not a number", name);
    return tensor->as<float>();
  }

  template <size_t N>
  Status fill(const std::string& name, std::array<float, N>& to) const {
    std::ranges::copy(HONE_TRY(numbers(name, {static_cast<int64_t>(N)})), to.begin());
    return {};
  }

  Status networks() {
    const Tensor* first = content_.find("member0/middle");
    if (first == nullptr || first->type().rank() != 2)
      return bad_input("the network is missing: it begins with the tensor 'member0/middle'");
    const int64_t width1 = first->type().dim(0).value(), width2 = first->type().dim(1).value();
    if (width1 < 1 || width2 < 1 || width1 > static_cast<int64_t>(kMaxWidth) ||
        width2 > static_cast<int64_t>(kMaxWidth))
      return bad_input("widths of {} and {} are outside of 1..{}", width1, width2, kMaxWidth);
    model_.width1 = static_cast<size_t>(width1);
    model_.width2 = static_cast<size_t>(width2);
    const auto copied = [](std::span<const float> numbers) {
      return std::vector<float>(numbers.begin(), numbers.end());
    };
    for (size_t m = 0; content_.find(fmt::format("member{}/input", m)) != nullptr; ++m) {
      if (m == kMaxMembers) return over_limit("more than {} networks", kMaxMembers);
      const std::string name = fmt::format("member{}/", m);
      ModelMember member;
      member.input = copied(HONE_TRY(numbers(name + "input", {kAll, width1})));
      member.bias1 = copied(HONE_TRY(numbers(name + "bias1", {width1})));
      member.middle = copied(HONE_TRY(numbers(name + "middle", {width1, width2})));
      member.bias2 = copied(HONE_TRY(numbers(name + "bias2", {width2})));
      member.output = copied(HONE_TRY(numbers(name + "output", {width2})));
      member.bias3 = HONE_TRY(numbers(name + "bias3", {1}))[0];
      model_.members.push_back(std::move(member));
    }
    if (model_.members.empty()) return bad_input("the file has no network");
    return {};
  }

  Status kernels() {
    const Tensor* tensor = content_.find("kernels");
    if (tensor == nullptr || tensor->type().rank() != 2)
      return bad_input("the tensor 'kernels' is missing");
    const int64_t count = tensor->type().dim(0).value();
    if (count < 0 || count > static_cast<int64_t>(kMaxKernels))
      return over_limit("{} kernels, more than {}", count, kMaxKernels);
    const std::span<const float> all = HONE_TRY(numbers("kernels", {count, kOfKernel}));
    model_.kernels.resize(static_cast<size_t>(count));
    for (size_t k = 0; k < model_.kernels.size(); ++k)
      std::ranges::copy(all.subspan(k * kKernelFeatures, kKernelFeatures),
                        model_.kernels[k].begin());
    const std::span<const float> priced = HONE_TRY(numbers("kernels/priced", {count}));
    model_.priced.assign(priced.begin(), priced.end());
    return {};
  }

  const Safetensors& content_;
  KernelModel model_;
};

Result<KernelModel> model_in(const Result<Safetensors>& content, std::string_view where) {
  if (!content.ok()) return content.error();
  Result<KernelModel> model = Reader(*content).run();
  return model.ok() ? std::move(model) : Error(model.error()).within(std::string(where));
}

}  // namespace

bool KernelModel::has_seen(std::string_view kind, Algorithm algorithm) const {
  const auto at = seen.find(fmt::format("{} {}", kind, name(algorithm)));
  return at != seen.end() && at->second >= kLeastSeen;
}

double KernelModel::level(std::string_view kind) const {
  const auto at = levels.find(kind);
  return at == levels.end() ? 0 : at->second;
}

double KernelModel::distance(const Features& of_kernel) const {
  std::array<float, kKernelFeatures> at;
  for (size_t f = 0; f < kKernelFeatures; ++f)
    at[f] = (of_kernel.all()[f] - mean[f]) / std::max(deviation[f], 1e-6F);
  float least = std::numeric_limits<float>::infinity();
  for (const auto& kernel : kernels) {
    float sum = 0;
    for (size_t f = 0; f < kKernelFeatures; ++f) sum += (at[f] - kernel[f]) * (at[f] - kernel[f]);
    least = std::min(least, sum);
  }
  return std::sqrt(static_cast<double>(least));
}

const RegretBound* KernelModel::bound_of(std::string_view kind) const {
  const RegretBound* of_all = nullptr;
  for (const RegretBound& bound : bounds) {
    if (bound.kind == kind) return &bound;
    if (bound.kind.empty()) of_all = &bound;
  }
  return of_all;
}

uint64_t hash_of(const KernelModel& model) { return Writer::checksum(Writer().run(model)); }

Status write_kernel_model(const std::filesystem::path& path, const KernelModel& model) {
  return write_safetensors(path, Writer().run(model));
}

Result<KernelModel> read_kernel_model(const std::filesystem::path& path) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (!failed && bytes > static_cast<uintmax_t>(kMaxModelBytes))
    return over_limit("a model of {} bytes, more than {}", bytes, kMaxModelBytes)
        .within(path.native());
  return model_in(read_safetensors(path), path.native());
}

Result<KernelModel> parse_kernel_model(std::span<const std::byte> file, std::string_view where) {
  return model_in(parse_safetensors(file, where), where);
}

Status check_is_for(const KernelModel& model, const Target& target) {
  if (model.fingerprint == fingerprint(target)) return {};
  return unsupported("the model is of the target '{}' ({}), not of '{}' ({})", model.target,
                     hex(model.fingerprint), target.name, hex(fingerprint(target)))
      .with_hint("'hone train cost' makes one for this target");
}

}  // namespace hone
