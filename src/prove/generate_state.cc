#include "prove/generate_state.h"

#include <fstream>

#include "base/file.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr int64_t kMaxText = int64_t{4} << 30;

std::string head_of(uint64_t search) {
  return fmt::format("hone rules generate, state 2, search {:016x}\n", search);
}

// The texts of a candidate stand behind a line that tells how long they are.
std::string text_of(const CandidateBlock& block) {
  std::string text = "block\n";
  for (const CandidateOutcome& outcome : block) {
    if (outcome.is_common || outcome.is_implied) {
      text += outcome.is_common ? "common\n" : "implied\n";
      continue;
    }
    const std::string rule = outcome.rule ? print(*outcome.rule) : "";
    const std::string& second = outcome.rule ? outcome.certificate : outcome.why;
    text += fmt::format("{} {} {}\n{}{}\n",
                        !outcome.rule        ? "rejected"
                        : outcome.is_guarded ? "guarded"
                                             : "rule",
                        rule.size(), second.size(), rule, second);
  }
  return text + "end\n";
}

// Takes pieces off the front of a text; nothing: it ends before.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  std::optional<std::string_view> line() {
    const size_t end = text_.find('\n', at_);
    if (end == text_.npos) return std::nullopt;
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }
  std::optional<std::string_view> bytes(std::string_view count) {
    const Result<int64_t> number = parse_int(count);
    if (!number.ok() || *number < 0 || static_cast<size_t>(*number) > text_.size() - at_)
      return std::nullopt;
    const std::string_view bytes = text_.substr(at_, static_cast<size_t>(*number));
    at_ += bytes.size();
    return bytes;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// Nothing: the block is not whole.
Result<std::optional<CandidateBlock>> block_of(Reader& reader) {
  const std::optional<CandidateBlock> none;
  if (reader.line() != "block") return none;
  CandidateBlock block;
  for (;;) {
    const std::optional<std::string_view> line = reader.line();
    if (!line) return none;
    if (*line == "end") return std::optional(std::move(block));
    CandidateOutcome& outcome = block.emplace_back();
    outcome.is_common = *line == "common";
    outcome.is_implied = *line == "implied";
    if (outcome.is_common || outcome.is_implied) continue;
    const std::vector<std::string_view> words = split_words(*line);
    if (words.size() != 3)
      return bad_input("'{}' is not an outcome of a candidate", excerpt(*line));
    const std::optional<std::string_view> rule = reader.bytes(words[1]);
    const std::optional<std::string_view> second = rule ? reader.bytes(words[2]) : std::nullopt;
    if (!second || reader.line() != "") return none;
    outcome.is_guarded = words[0] == "guarded";
    if (words[0] == "rejected") {
      outcome.why = *second;
      continue;
    }
    std::vector<Rule> rules = HONE_TRY(parse_rules(*rule));
    if (rules.size() != 1) return bad_input("there are {} rules for a candidate", rules.size());
    outcome.rule = std::move(rules[0]);
    outcome.certificate = *second;
  }
}

}  // namespace

Result<GenerateState> GenerateState::open(const std::filesystem::path& path, uint64_t search) {
  GenerateState state;
  state.path_ = path;
  const std::string head = head_of(search);
  std::error_code code;
  if (!std::filesystem::exists(path, code) || std::filesystem::file_size(path, code) == 0) {
    HONE_TRY(write_file_atomic(path, head));
    return state;
  }
  const std::string text = HONE_TRY(read_file(path, kMaxText));
  if (!text.starts_with(head))
    return bad_input("'{}' is not the state of this search", path.string())
        .with_hint("name another file, or the family and options that the file was begun with");
  Result<size_t> end = state.read(std::string_view(text).substr(head.size()));
  if (!end.ok()) return std::move(end).error().within(path.string());
  std::filesystem::resize_file(path, head.size() + *end, code);
  if (code) return os_error("write", path.string(), code.value());
  return state;
}

Result<size_t> GenerateState::read(std::string_view text) {
  Reader reader(text);
  size_t end = 0;
  while (end < text.size()) {
    std::optional<CandidateBlock> block = HONE_TRY(block_of(reader));
    if (!block) break;
    blocks_.push_back(std::move(*block));
    end = reader.at();
  }
  return end;
}

std::optional<CandidateBlock> GenerateState::next() {
  if (at_ >= blocks_.size()) return std::nullopt;
  return std::move(blocks_[at_++]);
}

Status GenerateState::append(const CandidateBlock& block) {
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << text_of(block);
  file.flush();
  if (!file) return os_error("write", path_.string(), errno);
  return {};
}

}  // namespace hone
