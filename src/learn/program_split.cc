#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "learn/kernel_data.h"

namespace hone {
namespace {

constexpr int64_t kMaxSplitBytes = 16 << 20;
// A kernel that programs of several parts have counts for the first of these.
constexpr std::array kFirstOf = {Part::test, Part::validation, Part::train};

Result<Part> part_from_name(std::string_view word) {
  for (Part part : kParts)
    if (name(part) == word) return part;
  return bad_input("'{}' is not one of train, validation, test", excerpt(word));
}

}  // namespace

std::string_view name(Part part) {
  constexpr std::array<std::string_view, 3> kNames = {"train", "validation", "test"};
  return kNames[static_cast<size_t>(part)];
}

Result<ProgramSplit> parse_split(std::string_view text, std::string_view file) {
  ProgramSplit split;
  // Decides by the names of files, which are all that some data has: zoo:alexnet and zoo_alexnet
  // are one.
  std::map<std::string, std::pair<std::string, Part>, std::less<>> known;
  int64_t number = 0;
  for (std::string_view line : split_lines(text)) {
    ++number;
    const std::string where = fmt::format("{}:{}", file, number);
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos)
      return bad_input("'{}' names no program", excerpt(line))
          .at(where)
          .with_hint("a line is a part and a program: test zoo:resnet50");
    const Result<Part> part = part_from_name(line.substr(0, blank));
    if (!part.ok()) return Error(part.error()).at(where);
    const std::string program(trim(line.substr(blank)));
    if (Status status = check_program_name(program); !status.ok())
      return std::move(status).error().at(where);
    const auto [at, is_new] = known.try_emplace(file_name_of(program), program, *part);
    if (!is_new) {
      const auto& [before, its_part] = at->second;
      const std::string spelled = before == program ? "" : fmt::format(" as '{}'", before);
      return bad_input("the program '{}' is in {}{} and in {}", program, name(its_part), spelled,
                       name(*part))
          .at(where)
          .with_hint("a program is in one part, and is named once");
    }
    split.of(*part).push_back(program);
  }
  for (Part part : kParts) std::ranges::sort(split.of(part));
  return split;
}

Result<ProgramSplit> read_split(const std::string& path) {
  return parse_split(HONE_TRY(read_file(path, kMaxSplitBytes)), path);
}

std::string print(const ProgramSplit& split) {
  std::string text;
  for (Part part : kParts)
    for (const std::string& program : split.of(part))
      text += fmt::format("{} {}\n", name(part), program);
  return text;
}

std::string_view family_of(std::string_view program) {
  consume_prefix(program, "zoo:");
  if (program.find(':') != std::string_view::npos) return program;
  program = program.substr(program.rfind('/') + 1);
  program = program.substr(0, program.find(','));
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  size_t end = 0;
  while (end < program.size() && is_letter(program[end])) ++end;
  return end == 0 ? program : program.substr(0, end);
}

Result<ProgramSplit> random_split(std::span<const std::string> programs, uint64_t seed,
                                  const SplitShares& shares) {
  const auto is_share = [](double share) { return share >= 0 && share < 1; };
  if (!is_share(shares.validation) || !is_share(shares.test) ||
      shares.validation + shares.test >= 1)
    return usage_error("shares of {} and {} leave nothing to train with", shares.validation,
                       shares.test);
  if (programs.empty())
    return bad_input("there are no programs to split")
        .with_hint("'hone dataset inspect' tells what a set has");
  std::map<std::string, std::vector<std::string>, std::less<>> families;
  for (const std::string& program : programs)
    families[std::string(family_of(program))].push_back(program);
  std::vector<const std::vector<std::string>*> order;
  for (const auto& [name, members] : families) order.push_back(&members);
  Rng(seed).shuffle(order);
  const size_t parts = 1 + (shares.validation > 0) + (shares.test > 0);
  if (order.size() < parts)
    return bad_input("{} families of programs cannot be split into {} parts", order.size(), parts)
        .with_hint("programs whose names begin with the same letters are of one family");

  const auto count = static_cast<double>(programs.size());
  ProgramSplit split;
  size_t next = 0, left = parts;  // families that are given away, parts that have none yet
  const auto fill = [&](Part part, double share) {
    if (share <= 0) return;
    --left;
    while (split.of(part).empty() ||
           (static_cast<double>(split.of(part).size()) + 0.5 < share * count &&
            order.size() - next > left)) {
      split.of(part).insert(split.of(part).end(), order[next]->begin(), order[next]->end());
      ++next;
    }
  };
  fill(Part::test, shares.test);
  fill(Part::validation, shares.validation);
  for (; next < order.size(); ++next)
    split.of(Part::train)
        .insert(split.of(Part::train).end(), order[next]->begin(), order[next]->end());
  for (Part part : kParts) std::ranges::sort(split.of(part));
  return split;
}

Status check(const ProgramSplit& split, std::span<const std::string> programs) {
  for (Part part : kParts)
    for (const std::string& program : split.of(part))
      if (!std::ranges::binary_search(programs, program))
        return bad_input("the data has no program '{}', which the split has in {}", program,
                         name(part))
            .with_hint(did_you_mean(program, programs));
  return {};
}

Status check(const ProgramSplit& split, const KernelData& data) {
  return check(split, programs_of(data));
}

std::vector<KernelSample> part(const KernelData& data, const ProgramSplit& split, Part wanted) {
  const auto has = [&](const KernelSample& kernel, Part part) {
    return std::ranges::any_of(kernel.programs, [&](const std::string& program) {
      return std::ranges::binary_search(split.of(part), program);
    });
  };
  std::vector<KernelSample> kernels;
  for (const KernelSample& kernel : data.kernels) {
    const auto first = std::ranges::find_if(kFirstOf, [&](Part part) { return has(kernel, part); });
    if (first != kFirstOf.end() && *first == wanted) kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace hone
