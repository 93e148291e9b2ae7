#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rules/rule.h"

namespace hone {

// The outcome of a candidate.
struct CandidateOutcome {
  bool is_common = false, is_implied = false, is_guarded = false;
  std::optional<Rule> rule = std::nullopt;  // if it is true
  std::string certificate = "", why = "";   // why: it is not
};
using CandidateBlock = std::vector<CandidateOutcome>;

// A file that gets what became of candidates, block by block, while rules are searched for. A
// search that was killed goes on from there: terms are made anew, which is quick, and blocks that
// the file has are not verified again.
class GenerateState {
 public:
  // search: a hash of all that decides what is found. An error if the file is of another search. A
  // block that was cut off is removed.
  static Result<GenerateState> open(const std::filesystem::path& path, uint64_t search);

  size_t known() const { return blocks_.size(); }
  // The next block of the file; nothing: there is no more, and append() is next.
  std::optional<CandidateBlock> next();
  Status append(const CandidateBlock& block);

 private:
  GenerateState() = default;
  // Blocks up to the first that is not whole; where that begins.
  Result<size_t> read(std::string_view text);

  std::filesystem::path path_;
  std::vector<CandidateBlock> blocks_;
  size_t at_ = 0;
};

}  // namespace hone
