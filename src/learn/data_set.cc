#include "learn/data_set.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "log/hash_text.h"
#include "log/json_fields.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kFormat = 1;
constexpr int64_t kMaxInfoBytes = 1 << 20;
constexpr int64_t kMaxProgramsBytes = int64_t{1} << 28;

constexpr KernelOrigin kOrigins[] = {KernelOrigin::plan, KernelOrigin::groups,
                                     KernelOrigin::layouts};

std::string path_in(const std::string& folder, std::string_view file) {
  return (fs::path(folder) / file).native();
}

std::string print_info(const DataSetInfo& info) {
  Json json = {{"format", kFormat},
               {"threads", info.threads},
               {"conditions", info.conditions},
               {"version", info.version},
               {"seed", info.seed},
               {"schedules", info.schedules},
               {"fingerprint", hash_text(fingerprint(info.target))},
               {"target", print(info.target)}};
  if (info.probe) json["probe"] = print(*info.probe);
  return json.dump(2) + "\n";
}

Status check_probe(const Target& probe, const Target& target) {
  if (fingerprint(probe) == fingerprint(target) && probe.measured) return {};
  return bad_input("its probe is not one of its target");
}

Result<DataSetInfo> parse_info(std::string_view text) {
  const Json json = HONE_TRY(parse_json(text));
  if (!json.is_object()) return bad_input("it is not a JSON object");
  JsonFields fields(json);
  int64_t format = 0;
  HONE_TRY(fields.read("format", format));
  if (format != kFormat)
    return bad_input("its format is {}; this version of hone knows {}", format, kFormat);
  DataSetInfo info;
  std::string target;
  uint64_t print = 0;
  HONE_TRY(fields.read("threads", info.threads));
  HONE_TRY(fields.read("conditions", info.conditions));
  HONE_TRY(fields.read("version", info.version));
  HONE_TRY(fields.read("seed", info.seed));
  HONE_TRY(fields.read("schedules", info.schedules));
  HONE_TRY(fields.read("fingerprint", print));
  HONE_TRY(fields.read("target", target));
  std::string probe;  // sets of older versions have none
  if (json.contains("probe")) HONE_TRY(fields.read("probe", probe));
  HONE_TRY(fields.finish());
  info.target = HONE_TRY(parse_target(target, "target"));
  if (!probe.empty()) {
    info.probe = HONE_TRY(parse_target(probe, "probe"));
    HONE_TRY(check_probe(*info.probe, info.target));
  }
  if (fingerprint(info.target) != print)
    return bad_input("the fingerprint {} is not that of the target, {}", hash_text(print),
                     hash_text(fingerprint(info.target)));
  if (info.threads < 1 || info.threads > info.target.cores)
    return bad_input("{} threads are outside of 1..{}, the target's cores", info.threads,
                     info.target.cores);
  return info;
}

Result<DataSetInfo> read_info(const std::string& folder) {
  const std::string path = path_in(folder, "dataset.json");
  std::error_code failed;
  if (!fs::exists(path, failed))
    return bad_input("'{}' is not a data set: it has no dataset.json", excerpt(folder))
        .with_hint("'hone dataset build -o FOLDER' makes one");
  const std::string text = HONE_TRY(read_file(path, kMaxInfoBytes));
  Result<DataSetInfo> info = parse_info(text);
  if (!info.ok()) return std::move(info).error().within(path);
  return info;
}

std::string line_of(const ProgramKernel& kernel) {
  const Json json = {{"kernel", hash_text(kernel.kernel)},
                     {"program", kernel.program},
                     {"planned", kernel.planned},
                     {"price", kernel.price},
                     {"origin", name(kernel.origin)}};
  return json.dump() + "\n";
}

Result<ProgramKernel> parse_line(std::string_view line) {
  const Json json = HONE_TRY(parse_json(line));
  if (!json.is_object()) return bad_input("it is not a JSON object");
  JsonFields fields(json);
  ProgramKernel kernel;
  HONE_TRY(fields.read("kernel", kernel.kernel));
  HONE_TRY(fields.read("program", kernel.program));
  HONE_TRY(fields.read("planned", kernel.planned));
  HONE_TRY(fields.read("price", kernel.price));
  if (!(kernel.price >= 0)) return bad_input("its price is {} s", kernel.price);
  std::string origin;
  HONE_TRY(fields.read("origin", origin));
  const auto at = std::ranges::find(kOrigins, origin, [](KernelOrigin each) { return name(each); });
  if (at == std::end(kOrigins)) return bad_input("there is no origin '{}'", excerpt(origin));
  kernel.origin = *at;
  HONE_TRY(fields.finish());
  HONE_TRY(check_program_name(kernel.program));
  return kernel;
}

}  // namespace

std::string_view name(KernelOrigin origin) {
  constexpr std::string_view kNames[] = {"plan", "groups", "layouts"};
  return kNames[static_cast<size_t>(origin)];
}

Status check_program_name(std::string_view name) {
  if (name.empty()) return bad_input("a program has no name");
  if (name.size() > kMaxProgramBytes)
    return over_limit("the name of a program has {} bytes, more than {}", name.size(),
                      kMaxProgramBytes);
  const auto is_good = [](char c) { return c >= ' ' && c <= '~' && c != '#'; };
  if (trim(name) != name || !std::ranges::all_of(name, is_good))
    return bad_input("'{}' cannot name a program", excerpt(name))
        .with_hint("a name is one line of printable ASCII without #");
  return {};
}

std::string file_name_of(std::string_view program) {
  std::string name(program);
  for (char& c : name)
    if (std::string_view("/:, \\").find(c) != std::string_view::npos) c = '_';
  return name;
}

Status check_target(uint64_t known, uint64_t given) {
  if (known == given) return {};
  const auto name = [](uint64_t target) {
    return target == 0 ? std::string("one that nobody names") : hash_text(target);
  };
  return bad_input(
      "it is of the target {}, not of {}: times of different processors are never "
      "mixed",
      name(given), name(known));
}

Status check_same(const DataSetInfo& a, const DataSetInfo& b) {
  if (fingerprint(a.target) != fingerprint(b.target))
    return bad_input(
        "one is of the target {} ({}), the other of {} ({}): times of different "
        "processors are never mixed",
        hash_text(fingerprint(a.target)), a.target.name, hash_text(fingerprint(b.target)),
        b.target.name);
  if (a.threads != b.threads)
    return bad_input("one is of {} threads, the other of {}", a.threads, b.threads);
  if (a.conditions != b.conditions)
    return bad_input("one was measured as '{}', the other as '{}'", a.conditions, b.conditions);
  return {};
}

namespace {

// Nothing goes into a folder that people keep other files in. The beginning of a data set by a
// killed process is its own.
Status check_free(const std::string& folder) {
  constexpr std::string_view kOwn[] = {"dataset.json", "log.db", "programs.jsonl", "layout"};
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().native();
    if (std::ranges::none_of(kOwn, [&](std::string_view own) { return name.starts_with(own); }))
      return bad_input("the folder is not empty, and not a data set: it has '{}'", excerpt(name))
          .within(folder)
          .with_hint("name a new folder for a data set");
  }
  return {};
}

}  // namespace

Result<DataSet> DataSet::make(const std::string& folder, const DataSetInfo& info) {
  HONE_TRY(make_folders(folder));
  DataSetInfo known = info;
  const std::string path = path_in(folder, "dataset.json");
  std::error_code failed;
  if (fs::exists(path, failed)) {
    known = HONE_TRY(read_info(folder));
    if (Status same = check_same(known, info); !same.ok())
      return std::move(same).error().within(folder).with_hint("-o names another folder");
    known.seed = info.seed;
    known.schedules = info.schedules;
    if (!known.probe) known.probe = info.probe;
  } else {
    HONE_TRY(check_free(folder));
  }
  DataSet set(folder, known);
  set.log_ = HONE_TRY(Log::open(path_in(folder, "log.db")));
  HONE_TRY(set.read_programs());
  HONE_TRY(set.log_->know("target", fingerprint(known.target), print(known.target)));
  HONE_TRY(write_file_atomic(path, print_info(known)));
  return set;
}

Result<DataSet> DataSet::open(const std::string& folder) {
  DataSet set(folder, HONE_TRY(read_info(folder)));
  set.log_ = HONE_TRY(Log::open(path_in(folder, "log.db"), Log::Mode::read));
  HONE_TRY(set.read_programs());
  return set;
}

Status DataSet::know_probe(const Target& probe) {
  if (Status own = check_probe(probe, info_.target); !own.ok())
    return std::move(own).error().within(folder_);
  info_.probe = probe;
  return write_file_atomic(path_in(folder_, "dataset.json"), print_info(info_));
}

Status DataSet::read_programs() {
  const std::string path = path_in(folder_, "programs.jsonl");
  std::error_code failed;
  if (!fs::exists(path, failed)) return {};
  const std::string text = HONE_TRY(read_file(path, kMaxProgramsBytes));
  int64_t number = 0;
  for (std::string_view line : split_lines(text)) {
    ++number;
    Result<ProgramKernel> kernel = parse_line(line);
    if (!kernel.ok()) return std::move(kernel).error().within(fmt::format("{}:{}", path, number));
    kernels_.push_back(*std::move(kernel));
  }
  return {};
}

std::vector<std::string> DataSet::programs() const {
  std::set<std::string> names;
  for (const ProgramKernel& kernel : kernels_) names.insert(kernel.program);
  return {names.begin(), names.end()};
}

bool DataSet::has_program(std::string_view name) const {
  return std::ranges::any_of(kernels_, [&](const ProgramKernel& kernel) {
    return kernel.program == name && kernel.origin == KernelOrigin::plan;
  });
}

Status DataSet::add(std::span<const ProgramKernel> kernels) {
  std::set<std::pair<uint64_t, std::string>> known;
  for (const ProgramKernel& kernel : kernels_) known.emplace(kernel.kernel, kernel.program);
  std::vector<ProgramKernel> all = kernels_;
  for (const ProgramKernel& kernel : kernels) {
    HONE_TRY(check_program_name(kernel.program));
    if (known.emplace(kernel.kernel, kernel.program).second) all.push_back(kernel);
  }
  if (all.size() == kernels_.size()) return {};
  std::string text;
  for (const ProgramKernel& kernel : all) text += line_of(kernel);
  HONE_TRY(write_file_atomic(path_in(folder_, "programs.jsonl"), text));
  kernels_ = std::move(all);
  return {};
}

Query DataSet::query() const {
  return {.kind = "kernel", .target = fingerprint(info_.target), .conditions = info_.conditions};
}

Result<MergedSets> merge(DataSet& into, const DataSet& from) {
  if (Status same = check_same(into.info(), from.info()); !same.ok())
    return std::move(same).error().within(
        fmt::format("'{}' and '{}'", into.folder(), from.folder()));
  LogMerge records(into.log());
  HONE_TRY(records.take_all(from.log()));
  const auto before = static_cast<int64_t>(into.kernels().size());
  MergedSets merged{.added = HONE_TRY(records.finish()).added};
  HONE_TRY(into.add(from.kernels()));
  merged.kernels = static_cast<int64_t>(into.kernels().size()) - before;
  return merged;
}

}  // namespace hone
