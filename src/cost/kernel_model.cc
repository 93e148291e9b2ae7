#include "cost/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "base/team.h"
#include "base/text.h"
#include "cost/model_file.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

constexpr std::string_view kFormat = "hone kernel model 4";
constexpr std::string_view kFormatOfSeveral = "hone model of several processors 2";
constexpr size_t kMaxMembers = 64, kMaxWidth = 1024, kMaxKernels = 1 << 16;

constexpr size_t kMaxTargets = 1024;

constexpr int64_t kAll = kFeatures, kOfKernel = kKernelFeatures, kOfTarget = kTargetFeatures;

// ---- Writing ------------------------------------------------------------------------------------

class Writer {
 public:
  Safetensors run(const KernelModel& model) {
    add_members("", model, model.members);
    for (size_t m = 0; m < model.members.size() && model.is_of_several(); ++m)
      add(fmt::format("member{}/target", m), {kOfTarget, static_cast<int64_t>(model.width1)},
          model.members[m].target);
    add("low", {kAll}, model.low);
    add("high", {kAll}, model.high);
    add("kernels/mean", {kOfKernel}, model.mean);
    add("kernels/deviation", {kOfKernel}, model.deviation);
    std::vector<float> kernels;
    for (const auto& each : model.kernels) kernels.insert(kernels.end(), each.begin(), each.end());
    const auto count = static_cast<int64_t>(model.kernels.size());
    add("kernels", {count, kOfKernel}, kernels);
    add("kernels/priced", {count}, model.priced);
    if (model.is_of_several()) add_processors(model);
    auto& metadata = content_.metadata;
    metadata["format"] = model.is_of_several() ? kFormatOfSeveral : kFormat;
    metadata["features"] = feature_version();
    metadata["target"] = model.target;
    metadata["fingerprint"] = hex_text(model.fingerprint);
    metadata["core"] = hex_text(model.core);
    metadata["threads"] = std::to_string(model.threads);
    metadata["prices"] = print(model.prices, model.target);
    add_trust("", model.reach, model.lead, model.levels, model.bounds);
    if (model.own <= kMaxKernels)
      metadata["own"] = fmt::format("{} {}", model.first_own, model.own);
    if (!model.abroad.empty()) {
      std::vector<std::string> parts;
      for (const ProcessorKernels& each : model.abroad)
        parts.push_back(fmt::format("{} {}", each.processor, each.count));
      metadata["abroad"] = join(parts, "\n");
    }
    metadata["caution"] = fmt::format("{}", model.caution);
    metadata["programs"] = join(model.programs, "\n");
    std::vector<std::string> lines;
    for (const auto& [what, count] : model.seen) lines.push_back(fmt::format("{} {}", count, what));
    metadata["seen"] = join(lines, "\n");
    metadata["checksum"] = hex_text(checksum_of(content_));
    return std::move(content_);
  }

 private:
  void add(std::string name, std::initializer_list<Dim> dims, std::span<const float> values) {
    add_numbers(content_, std::move(name), dims, values);
  }

  void add_members(std::string_view prefix, const KernelModel& model,
                   std::span<const ModelMember> members) {
    const auto width1 = static_cast<int64_t>(model.width1);
    const auto width2 = static_cast<int64_t>(model.width2);
    for (size_t m = 0; m < members.size(); ++m) {
      const ModelMember& member = members[m];
      const std::string name = fmt::format("{}member{}/", prefix, m);
      add(name + "input", {kAll, width1}, member.input);
      add(name + "bias1", {width1}, member.bias1);
      add(name + "middle", {width1, width2}, member.middle);
      add(name + "bias2", {width2}, member.bias2);
      add(name + "output", {width2}, member.output);
      add(name + "bias3", {1}, std::span(&member.bias3, 1));
    }
  }

  static std::string text_of(std::span<const RegretBound> bounds) {
    std::vector<std::string> lines;
    for (const RegretBound& bound : bounds) {
      std::string line;
      for (double slower : bound.slower) line += fmt::format("{} ", slower);
      lines.push_back(line + (bound.kind.empty() ? "all" : bound.kind));
    }
    return join(lines, "\n");
  }

  void add_trust(const std::string& prefix, double reach, double lead,
                 const std::map<std::string, double, std::less<>>& levels,
                 std::span<const RegretBound> bounds) {
    auto& metadata = content_.metadata;
    metadata[prefix + "reach"] = fmt::format("{}", reach);
    metadata[prefix + "lead"] = fmt::format("{}", lead);
    std::vector<std::string> lines;
    for (const auto& [kind, level] : levels) lines.push_back(fmt::format("{} {}", level, kind));
    metadata[prefix + "levels"] = join(lines, "\n");
    metadata[prefix + "bounds"] = text_of(bounds);
  }
  void add_trust(const std::string& prefix, const ModelTrust& trust) {
    add_trust(prefix, trust.reach, trust.lead, trust.levels, trust.bounds);
  }

  void add_processors(const KernelModel& model) {
    const ModelProcessors& processors = model.processors;
    std::vector<std::string> lines;
    std::vector<float> features;
    auto& metadata = content_.metadata;
    for (const ModelTarget& each : processors.targets) {
      const std::string prefix = fmt::format("processor{}/", lines.size());
      lines.push_back(fmt::format("{} {} {} {}", hex_text(each.fingerprint), hex_text(each.core),
                                  each.kernels, each.name));
      features.insert(features.end(), each.features.all().begin(), each.features.all().end());
      metadata[prefix + "prices"] = print(each.prices, each.name);
      add_trust(prefix, each.trust);
      add_members(prefix, model, each.members);
    }
    add("targets", {std::ssize(processors.targets), kOfTarget}, features);
    add("targets/low", {kOfTarget}, processors.low.all());
    add("targets/high", {kOfTarget}, processors.high.all());
    add("targets/mean", {kOfTarget}, processors.mean.all());
    metadata["target_features"] = target_feature_version();
    metadata["processors"] = join(lines, "\n");
    add_trust("fitted/", processors.fitted);
  }

  Safetensors content_;
};

// ---- Reading ------------------------------------------------------------------------------------

class Reader : private ModelFields {
 public:
  explicit Reader(const Safetensors& content) : ModelFields(content), content_(content) {}

  Result<KernelModel> run() {
    const std::string format = HONE_TRY(text("format"));
    if (format != kFormat && format != kFormatOfSeveral)
      return bad_input("the format is '{}', not '{}' or '{}'", excerpt(format), kFormat,
                       kFormatOfSeveral);
    HONE_TRY(check_sum());
    if (HONE_TRY(text("features")) != feature_version())
      return bad_input("the model knows features of version {}, this hone has {}",
                       excerpt(HONE_TRY(text("features"))), feature_version())
          .with_hint("'hone train cost' makes a model for this hone");
    model_.target = HONE_TRY(text("target"));
    model_.prices = HONE_TRY(parse_prices(HONE_TRY(text("prices")), model_.target, "prices"));
    model_.fingerprint = HONE_TRY(hex("fingerprint"));
    model_.core = HONE_TRY(hex("core"));
    model_.threads = HONE_TRY(parse_int(HONE_TRY(text("threads"))));
    if (model_.threads < 1 || model_.threads > Team::kMaxThreads)
      return bad_input("{} threads are outside of 1..{}", model_.threads, Team::kMaxThreads);
    model_.caution = HONE_TRY(number("caution"));
    const std::string programs = HONE_TRY(text("programs"));
    for (std::string_view program : split(programs, '\n')) model_.programs.emplace_back(program);
    HONE_TRY(seen());
    ModelTrust trust = HONE_TRY(this->trust(""));
    model_.reach = trust.reach;
    model_.lead = trust.lead;
    model_.levels = std::move(trust.levels);
    model_.bounds = std::move(trust.bounds);
    if (content_.metadata.contains("own")) HONE_TRY(own());
    if (content_.metadata.contains("abroad")) HONE_TRY(abroad());
    if (format == kFormatOfSeveral) HONE_TRY(processors());
    HONE_TRY(networks());
    HONE_TRY(fill("low", model_.low));
    HONE_TRY(fill("high", model_.high));
    for (size_t f = 0; f < kFeatures; ++f)
      if (!(model_.low[f] <= model_.high[f])) return bad_input("'low' is above 'high'");
    HONE_TRY(fill("kernels/mean", model_.mean));
    HONE_TRY(fill("kernels/deviation", model_.deviation));
    HONE_TRY(kernels());
    HONE_TRY(check_counts());
    return std::move(model_);
  }

 private:
  // The targets of a model of several processors.
  Status processors() {
    if (HONE_TRY(text("target_features")) != target_feature_version())
      return bad_input("the model knows features of targets of version {}, this hone has {}",
                       excerpt(HONE_TRY(text("target_features"))), target_feature_version())
          .with_hint("'hone train cost' makes a model for this hone");
    ModelProcessors& to = model_.processors;
    const std::string lines = HONE_TRY(text("processors"));
    for (std::string_view line : split(lines, '\n')) {
      if (to.targets.size() == kMaxTargets) return over_limit("more than {} targets", kMaxTargets);
      to.targets.push_back(HONE_TRY(processor(line, to.targets.size())));
    }
    const std::span<const float> all =
        HONE_TRY(numbers("targets", {std::ssize(to.targets), kOfTarget}));
    for (size_t t = 0; t < to.targets.size(); ++t)
      std::ranges::copy(all.subspan(t * kTargetFeatures, kTargetFeatures),
                        to.targets[t].features.all().begin());
    HONE_TRY(fill("targets/low", to.low.all()));
    HONE_TRY(fill("targets/high", to.high.all()));
    HONE_TRY(fill("targets/mean", to.mean.all()));
    for (size_t f = 0; f < kTargetFeatures; ++f)
      if (!(to.low.all()[f] <= to.high.all()[f]))
        return bad_input("'targets/low' is above 'targets/high'");
    to.fitted = HONE_TRY(trust("fitted/"));
    return {};
  }

  Result<ModelTarget> processor(std::string_view line, size_t number) const {
    const auto bad = [&] { return bad_input("'{}' is not a target", excerpt(line)); };
    constexpr size_t kAfterHex = 2 * kHexDigits + 2;
    if (line.size() < kAfterHex || line[kHexDigits] != ' ' || line[kAfterHex - 1] != ' ')
      return bad();
    ModelTarget target;
    target.fingerprint = HONE_TRY(parse_hex("target", line.substr(0, kHexDigits)));
    target.core = HONE_TRY(parse_hex("core", line.substr(kHexDigits + 1, kHexDigits)));
    const std::string_view rest = line.substr(kAfterHex);
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos) return bad();
    target.kernels = HONE_TRY(parse_int(rest.substr(0, space)));
    if (target.kernels < 0 || target.kernels > static_cast<int64_t>(kMaxKernels)) return bad();
    target.name = rest.substr(space + 1);
    const std::string prefix = fmt::format("processor{}/", number);
    target.prices =
        HONE_TRY(parse_prices(HONE_TRY(text(prefix + "prices")), target.name, prefix + "prices"));
    target.trust = HONE_TRY(trust(prefix));
    return target;
  }

  Result<ModelTrust> trust(const std::string& prefix) const {
    ModelTrust trust;
    trust.reach = HONE_TRY(number(prefix + "reach"));
    trust.lead = HONE_TRY(number(prefix + "lead"));
    HONE_TRY(levels(prefix + "levels", trust.levels));
    HONE_TRY(bounds(prefix + "bounds", trust.bounds));
    return trust;
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

  Status levels(std::string_view key, std::map<std::string, double, std::less<>>& to) const {
    const std::string lines = HONE_TRY(text(key));
    if (lines.empty()) return {};
    for (std::string_view line : split(lines, '\n')) {
      const size_t space = line.find(' ');
      if (space == std::string_view::npos) return bad_input("'{}' is not a level", excerpt(line));
      const double level = HONE_TRY(parse_double(line.substr(0, space)));
      if (!std::isfinite(level)) return bad_input("'{}' is not a level", excerpt(line));
      to[std::string(line.substr(space + 1))] = level;
    }
    return {};
  }

  Status bounds(std::string_view key, std::vector<RegretBound>& to) const {
    const std::string lines = HONE_TRY(text(key));
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
      to.push_back(std::move(bound));
    }
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
    model_.members = HONE_TRY(members(""));
    for (size_t m = 0; m < model_.members.size() && model_.is_of_several(); ++m)
      model_.members[m].target =
          copied(HONE_TRY(numbers(fmt::format("member{}/target", m), {kOfTarget, width1})));
    for (size_t t = 0; t < model_.processors.targets.size(); ++t)
      model_.processors.targets[t].members = HONE_TRY(members(fmt::format("processor{}/", t)));
    return {};
  }

  static std::vector<float> copied(std::span<const float> numbers) {
    return {numbers.begin(), numbers.end()};
  }

  // The networks whose tensors' names begin with the prefix.
  Result<std::vector<ModelMember>> members(const std::string& prefix) const {
    const auto width1 = static_cast<int64_t>(model_.width1);
    const auto width2 = static_cast<int64_t>(model_.width2);
    std::vector<ModelMember> members;
    for (size_t m = 0; content_.find(fmt::format("{}member{}/input", prefix, m)) != nullptr; ++m) {
      if (m == kMaxMembers) return over_limit("more than {} networks", kMaxMembers);
      const std::string name = fmt::format("{}member{}/", prefix, m);
      ModelMember& member = members.emplace_back();
      member.input = copied(HONE_TRY(numbers(name + "input", {kAll, width1})));
      member.bias1 = copied(HONE_TRY(numbers(name + "bias1", {width1})));
      member.middle = copied(HONE_TRY(numbers(name + "middle", {width1, width2})));
      member.bias2 = copied(HONE_TRY(numbers(name + "bias2", {width2})));
      member.output = copied(HONE_TRY(numbers(name + "output", {width2})));
      member.bias3 = HONE_TRY(numbers(name + "bias3", {1}))[0];
    }
    if (members.empty()) return bad_input("the file has no network '{}member0'", prefix);
    return members;
  }

  // The kernels that were measured on the processor, if not all were.
  Status own() {
    std::tie(model_.first_own, model_.own) = HONE_TRY(two_counts(HONE_TRY(text("own"))));
    return {};
  }

  Status abroad() {
    const std::string lines = HONE_TRY(text("abroad"));
    for (std::string_view line : split(lines, '\n')) {
      const auto [processor, count] = HONE_TRY(two_counts(line));
      model_.abroad.push_back({processor, count});
    }
    return {};
  }

  static Result<std::pair<size_t, size_t>> two_counts(std::string_view both) {
    const size_t space = both.find(' ');
    if (space == std::string_view::npos)
      return bad_input("'{}' is not a part of kernels", excerpt(both));
    const int64_t first = HONE_TRY(parse_int(both.substr(0, space)));
    const int64_t second = HONE_TRY(parse_int(both.substr(space + 1)));
    constexpr auto kMost = static_cast<int64_t>(kMaxKernels);
    if (first < 0 || first > kMost || second < 0 || second > kMost)
      return bad_input("'{}' is not a part of kernels", excerpt(both));
    return std::pair(static_cast<size_t>(first), static_cast<size_t>(second));
  }

  // Kernels of targets, or of other processors, are those of the model.
  Status check_counts() const {
    size_t abroad = 0;
    for (const ProcessorKernels& each : model_.abroad) {
      if (each.processor >= kMaxTargets)
        return over_limit("processor {} of {}", each.processor, kMaxTargets);
      abroad += each.count;
    }
    if (!model_.abroad.empty() && abroad != model_.kernels.size())
      return bad_input("other processors do not have the {} kernels of the model",
                       model_.kernels.size());
    int64_t left = std::ssize(model_.kernels);
    for (const ModelTarget& each : model_.processors.targets) left -= each.kernels;
    if (!model_.is_of_several() || left == 0) return {};
    return bad_input("its targets do not have the {} kernels of the model", model_.kernels.size());
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
  if (abroad.empty()) return least_distance(of_kernel, 0, kernels.size());
  std::map<size_t, double> nearest;  // by processor
  size_t at = 0;
  for (const ProcessorKernels& each : abroad) {
    const double least = least_distance(of_kernel, at, at + each.count);
    const auto [its, is_first] = nearest.try_emplace(each.processor, least);
    if (!is_first) its->second = std::min(its->second, least);
    at += each.count;
  }
  double least = INFINITY, second = INFINITY;
  for (const auto& [processor, distance] : nearest) {
    second = std::min(second, std::max(least, distance));
    least = std::min(least, distance);
  }
  return second;
}

bool KernelModel::has_learned_from(const Features& of_kernel) const {
  constexpr double kSame = 1e-3;  // that very kernel
  const size_t first = std::min(first_own, kernels.size());
  return least_distance(of_kernel, first, first + std::min(own, kernels.size() - first)) < kSame;
}

double KernelModel::least_distance(const Features& of_kernel, size_t first, size_t last) const {
  std::array<float, kKernelFeatures> at;
  for (size_t f = 0; f < kKernelFeatures; ++f)
    at[f] = (of_kernel.all()[f] - mean[f]) / std::max(deviation[f], 1e-6F);
  // A planner asks about each new kernel, and a model knows thousands: side by side.
  constexpr size_t kSums = 4;
  float least = std::numeric_limits<float>::infinity();
  for (size_t k = first; k < last; ++k) {
    std::array<float, kSums> sums = {};
    size_t f = 0;
    for (; f + kSums <= kKernelFeatures; f += kSums)
      for (size_t i = 0; i < kSums; ++i) {
        const float off = at[f + i] - kernels[k][f + i];
        sums[i] += off * off;
      }
    for (; f < kKernelFeatures; ++f) {
      const float off = at[f] - kernels[k][f];
      sums[f % kSums] += off * off;
    }
    least = std::min(least, (sums[0] + sums[1]) + (sums[2] + sums[3]));
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

uint64_t hash_of(const KernelModel& model) { return checksum_of(Writer().run(model)); }

Status write_kernel_model(const std::filesystem::path& path, const KernelModel& model) {
  return write_safetensors(path, Writer().run(model));
}

Result<KernelModel> read_kernel_model(const std::filesystem::path& path) {
  HONE_TRY(check_model_size(path));
  return model_in(read_safetensors(path), path.native());
}

Result<KernelModel> parse_kernel_model(std::span<const std::byte> file, std::string_view where) {
  return model_in(parse_safetensors(file, where), where);
}

const ModelTarget* KernelModel::find_target(const Target& of) const {
  const auto at = std::ranges::find(processors.targets, core_fingerprint(of), &ModelTarget::core);
  return at == processors.targets.end() ? nullptr : &*at;
}

Status check_is_for(const KernelModel& model, const Target& target) {
  if (target.gpu)
    return unsupported("the model is of CPUs, and '{}' is a GPU", target.name)
        .with_hint("the analytic price counts there: --cost analytic");
  if (model.is_of_several()) return {};
  if (model.fingerprint == fingerprint(target)) return {};
  return unsupported("the model is of the target '{}' ({}), not of '{}' ({})", model.target,
                     hex_text(model.fingerprint), target.name, hex_text(fingerprint(target)))
      .with_hint("'hone train cost' makes one for this target");
}

namespace {

void add_to_biases(KernelModel& model, const TargetFeatures& features) {
  const ModelProcessors& processors = model.processors;
  for (ModelMember& member : model.members) {
    for (size_t f = 0; f < kTargetFeatures; ++f) {
      const float mean = processors.mean.all()[f], given = features.all()[f];
      if (std::isnan(given)) continue;  // the bias is that of the mean
      const float off = std::clamp(given, processors.low.all()[f], processors.high.all()[f]) - mean;
      for (size_t j = 0; j < model.width1; ++j)
        member.bias1[j] += off * member.target[f * model.width1 + j];
    }
    member.target.clear();
  }
}

// Targets of one processor differ in the last part of their names, the level of instructions.
std::vector<ProcessorKernels> kernels_of_processors(const ModelProcessors& processors) {
  std::vector<std::string_view> names;
  std::vector<ProcessorKernels> all;
  for (const ModelTarget& each : processors.targets) {
    const std::string_view name = std::string_view(each.name).substr(0, each.name.rfind(", "));
    const auto at = std::ranges::find(names, name) - names.begin();
    if (at == std::ssize(names)) names.push_back(name);
    all.push_back({static_cast<size_t>(at), static_cast<size_t>(each.kernels)});
  }
  return all;
}

void trust(KernelModel& model, const ModelTrust& trust) {
  model.reach = trust.reach;
  model.bounds = trust.bounds;
  model.lead = trust.lead;
  model.levels = trust.levels;
}

}  // namespace

Result<KernelModel> model_on(KernelModel model, const Target& target, const Prices* fitted) {
  HONE_TRY(check_is_for(model, target));
  if (!model.is_of_several()) return model;
  const ModelTarget* const known = model.find_target(target);
  model.own = 0;
  if (known != nullptr) {
    model.members = known->members;
    model.prices = known->prices;
    trust(model, known->trust);
    model.own = static_cast<size_t>(known->kernels);
    for (const ModelTarget* at = model.processors.targets.data(); at != known; ++at)
      model.first_own += static_cast<size_t>(at->kernels);
  } else {
    add_to_biases(model, target_features(target));
    model.abroad = kernels_of_processors(model.processors);
    if (fitted != nullptr) {
      model.prices = *fitted;
      trust(model, model.processors.fitted);
    }
  }
  model.target = target.name;
  model.fingerprint = fingerprint(target);
  model.core = core_fingerprint(target);
  model.processors = {};
  return model;
}

}  // namespace hone
