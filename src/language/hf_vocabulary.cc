#include <nlohmann/json.hpp>

#include <algorithm>
#include <unordered_map>

#include "base/file.h"
#include "base/text.h"
#include "language/language_source.h"

namespace hone {
namespace {

using VocabularyJson = nlohmann::json;

constexpr int64_t kMostTokenizerBytes = int64_t{1} << 28, kMostOtherBytes = 1 << 20;
constexpr int64_t kMostTokens = 1 << 21;

struct KnownSplit {
  std::string_view expression;
  std::string_view rules;
};
constexpr KnownSplit kKnownSplits[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)"
     R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+)"
     R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"}};

// A member, or null if it is missing.
const VocabularyJson* member(const VocabularyJson& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
std::string word(const VocabularyJson& object, const char* name) {
  const VocabularyJson* const found = member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}
bool is_set(const VocabularyJson& object, const char* name) {
  const VocabularyJson* const found = member(object, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

class HfVocabulary {
 public:
  explicit HfVocabulary(const VocabularyJson& file) : file_(file) {}

  Result<Vocabulary> read() {
    const VocabularyJson* const model = member(file_, "model");
    if (model == nullptr) return bad_input("'model' is missing");
    const std::string type = word(*model, "type");
    if (type == "Unigram") return read_unigram(*model);
    if (type == "WordPiece") return read_words(*model);
    if (!type.empty() && type != "BPE")
      return unsupported("the tokenizer is {}; hone knows BPE, Unigram and WordPiece",
                         hone::quoted(excerpt(type)));
    has_pieces_ = is_set(*model, "byte_fallback");
    if (!has_pieces_) HONE_TRY(read_rules());
    HONE_TRY(read_tokens(*model));
    HONE_TRY(read_added());
    HONE_TRY(read_merges(*model));
    made_.takes_whole_pieces = is_set(*model, "ignore_merges");
    const std::string unknown = word(*model, "unk_token");
    if (const auto found = ids_.find(unknown); !unknown.empty() && found != ids_.end())
      made_.unknown = found->second;
    if (const VocabularyJson* const normalizer = member(file_, "normalizer"); has_pieces_)
      made_.adds_blank = normalizer != nullptr &&
                         normalizer->dump().find(R"("type":"Prepend")") != std::string::npos;
    finish_texts();
    return std::move(made_);
  }

 private:
  Result<Vocabulary> read_words(const VocabularyJson& model) {
    const std::string mark = word(model, "continuing_subword_prefix");
    if (!mark.empty() && mark != "##")
      return unsupported("pieces within a word begin with {}; hone knows ##",
                         hone::quoted(excerpt(mark)));
    HONE_TRY(read_tokens(model));
    HONE_TRY(read_added());
    const auto found = ids_.find(word(model, "unk_token"));
    if (found == ids_.end()) return bad_input("'unk_token' names no token");
    made_.unknown = found->second;
    made_.words = HONE_TRY(word_rules());
    return std::move(made_);
  }

  Result<WordRules> word_rules() const {
    const VocabularyJson* const step = member(file_, "pre_tokenizer");
    if (step == nullptr || word(*step, "type") != "BertPreTokenizer")
      return unsupported("the pre-tokenizer of the words is {}; hone knows BertPreTokenizer",
                         hone::quoted(step == nullptr ? "" : excerpt(word(*step, "type"))));
    const VocabularyJson* const normalizer = member(file_, "normalizer");
    if (normalizer == nullptr)
      return WordRules{.cleans = false, .splits_ideographs = false, .folds = false};
    if (word(*normalizer, "type") != "BertNormalizer")
      return unsupported("the normalizer of the words is {}; hone knows BertNormalizer",
                         hone::quoted(excerpt(word(*normalizer, "type"))));
    const bool folds = is_set(*normalizer, "lowercase");
    const VocabularyJson* const strips = member(*normalizer, "strip_accents");
    if (strips != nullptr && is_set(*normalizer, "strip_accents") != folds)
      return unsupported("'strip_accents' differs from 'lowercase'; hone knows both or none");
    return WordRules{.cleans = is_set(*normalizer, "clean_text"),
                     .splits_ideographs = is_set(*normalizer, "handle_chinese_chars"),
                     .folds = folds};
  }

  Result<Vocabulary> read_unigram(const VocabularyJson& model) {
    made_.is_unigram = has_pieces_ = true;
    const VocabularyJson* const all = member(model, "vocab");
    if (all == nullptr || !all->is_array() || all->empty() || all->size() > kMostTokens)
      return bad_input("'vocab' of the model is missing");
    for (const VocabularyJson& one : *all) {
      if (!one.is_array() || one.size() != 2 || !one[0].is_string() || !one[1].is_number())
        return bad_input("{} is no piece and its score", excerpt(one.dump()));
      const auto id = static_cast<TokenId>(made_.tokens.size());
      HONE_TRY(put(id, one[0].get<std::string>(), TokenClass::normal));
      made_.tokens.back().score = one[1].get<float>();
    }
    HONE_TRY(read_unknown(model));
    HONE_TRY(read_added());
    HONE_TRY(read_marks());
    if (is_set(model, "byte_fallback")) finish_texts();
    return std::move(made_);
  }

  Status read_unknown(const VocabularyJson& model) {
    const VocabularyJson* const unknown = member(model, "unk_id");
    if (unknown == nullptr) return {};
    const TokenId id = HONE_TRY(number(*unknown, "unk_id"));
    if (id >= std::ssize(made_.tokens))
      return bad_input("'unk_id' is {}, but there are {} pieces", id, made_.tokens.size());
    made_.unknown = id;
    made_.tokens[static_cast<size_t>(id)].kind = TokenClass::unknown;
    return {};
  }

  // How blanks become U+2581, and if one is put in front.
  Status read_marks() {
    const VocabularyJson* const step = member(file_, "pre_tokenizer");
    if (step == nullptr) return {};
    if (word(*step, "type") != "Metaspace")
      return unsupported("the pre-tokenizer of the unigram vocabulary is {}; hone knows Metaspace",
                         hone::quoted(excerpt(word(*step, "type"))));
    const std::string scheme = word(*step, "prepend_scheme");
    const VocabularyJson* const old = member(*step, "add_prefix_space");
    made_.adds_blank =
        scheme.empty() ? old == nullptr || is_set(*step, "add_prefix_space") : scheme != "never";
    made_.adds_no_second = true;
    const VocabularyJson* const splits = member(*step, "split");
    made_.splits_words = splits == nullptr || is_set(*step, "split");
    return {};
  }

  // Each step of the pre-tokenizer, which may be a sequence.
  Status read_rules() {
    const VocabularyJson* const top = member(file_, "pre_tokenizer");
    if (top == nullptr) return unsupported("the tokenizer has no 'pre_tokenizer'");
    std::vector<const VocabularyJson*> steps = {top};
    if (const VocabularyJson* const inner = member(*top, "pretokenizers")) {
      steps.clear();
      for (const VocabularyJson& one : *inner) steps.push_back(&one);
    }
    std::string_view name = "gpt-2";
    for (const VocabularyJson* const step : steps) {
      const std::string type = word(*step, "type");
      if (type == "Split") {
        name = HONE_TRY(rules_of(*step));
      } else if (type == "Digits" && is_set(*step, "individual_digits")) {
        name = "smollm";
      } else if (type != "ByteLevel") {
        return unsupported("the pre-tokenizer is {}; hone knows ByteLevel, Split and Digits",
                           hone::quoted(excerpt(type)));
      }
    }
    made_.rules = piece_rules(name);
    return {};
  }

  static Result<std::string_view> rules_of(const VocabularyJson& split) {
    const VocabularyJson* const pattern = member(split, "pattern");
    const std::string expression = pattern == nullptr ? "" : word(*pattern, "Regex");
    const auto* const known = std::ranges::find(kKnownSplits, expression, &KnownSplit::expression);
    if (known == std::end(kKnownSplits))
      return unsupported("the tokenizer cuts text by {}; hone knows the expressions of {}",
                         hone::quoted(excerpt(expression)), known_piece_rules());
    return known->rules;
  }

  Result<TokenId> number(const VocabularyJson& value, std::string_view token) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= kMostTokens)
      return bad_input("the number of token {} is {}", hone::quoted(excerpt(token)),
                       excerpt(value.dump()));
    return static_cast<TokenId>(value.get<uint64_t>());
  }
  Status put(TokenId id, const std::string& text, TokenClass kind) {
    if (std::ssize(made_.tokens) <= id) made_.tokens.resize(static_cast<size_t>(id) + 1);
    made_.tokens[static_cast<size_t>(id)] = {text, -1e9F, kind};
    ids_[text] = id;
    return {};
  }

  Status read_tokens(const VocabularyJson& model) {
    const VocabularyJson* const all = member(model, "vocab");
    if (all == nullptr || !all->is_object() || all->empty())
      return bad_input("'vocab' of the model is missing");
    for (const auto& [text, value] : all->items())
      HONE_TRY(put(HONE_TRY(number(value, text)), text, TokenClass::normal));
    // Numbers that are left out would be tokens without a text.
    for (size_t i = 0; i < made_.tokens.size(); ++i)
      if (made_.tokens[i].text.empty()) made_.tokens[i].kind = TokenClass::unused;
    return {};
  }

  Status read_added() {
    const VocabularyJson* const added = member(file_, "added_tokens");
    if (added == nullptr || !added->is_array()) return {};
    for (const VocabularyJson& one : *added) {
      const std::string text = word(one, "content");
      const VocabularyJson* const id = member(one, "id");
      if (text.empty() || id == nullptr) return bad_input("an added token has no text or number");
      const bool is_control = is_set(one, "special");
      HONE_TRY(put(HONE_TRY(number(*id, text)), text,
                   is_control ? TokenClass::control : TokenClass::user));
    }
    return {};
  }

  Status read_merges(const VocabularyJson& model) {
    const VocabularyJson* const merges = member(model, "merges");
    if (merges == nullptr || !merges->is_array())
      return bad_input("'merges' of the model are missing");
    for (size_t i = 0; i < merges->size(); ++i) {
      const VocabularyJson& one = (*merges)[i];
      std::string left, right;
      if (one.is_string()) {
        const std::string& line = one.get_ref<const std::string&>();
        const size_t blank = line.find(' ', 1);
        if (blank != std::string::npos)
          left = line.substr(0, blank), right = line.substr(blank + 1);
      } else if (one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string()) {
        left = one[0].get<std::string>(), right = one[1].get<std::string>();
      }
      const auto first = ids_.find(left), second = ids_.find(right), both = ids_.find(left + right);
      if (first == ids_.end() || second == ids_.end() || both == ids_.end())
        return bad_input("merge {} is {}, not two tokens that make one", i, excerpt(one.dump()));
      if (!has_pieces_) {
        made_.merges.emplace_back(first->second, second->second);
        continue;
      }
      // Pieces are merged by scores: the first merge has the highest one.
      float& score = made_.tokens[static_cast<size_t>(both->second)].score;
      score = std::max(score, -static_cast<float>(i));
    }
    return {};
  }

  // Printable characters become the bytes that they stand for, and <0xE4> a byte.
  void finish_texts() {
    for (Vocabulary::Token& token : made_.tokens) {
      if (token.kind != TokenClass::normal) continue;
      if (!has_pieces_) {
        if (std::optional<std::string> bytes = bytes_of_printable(token.text))
          token.text = *std::move(bytes);
      } else if (const std::optional<char> byte = byte_of_name(token.text)) {
        token.text = *byte;
        token.kind = TokenClass::byte;
      }
    }
  }

  const VocabularyJson& file_;
  bool has_pieces_ = false;  // sentence pieces; else bytes
  std::unordered_map<std::string, TokenId> ids_;
  Vocabulary made_;
};

// A file that may be missing: an empty object then.
Result<VocabularyJson> json_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return VocabularyJson::object();
  VocabularyJson parsed = VocabularyJson::parse(
      HONE_TRY(read_file(path, kMostOtherBytes)), nullptr, false);
  if (!parsed.is_object()) return bad_input("it is not a JSON object").within(path.native());
  return parsed;
}

// The token that a text or an object with 'content' names.
std::optional<TokenId> token_named(const Vocabulary& vocabulary, const VocabularyJson* value) {
  if (value == nullptr) return std::nullopt;
  const std::string text = value->is_string() ? value->get<std::string>() : word(*value, "content");
  const auto found = std::ranges::find_if(vocabulary.tokens, [&](const Vocabulary::Token& token) {
    return token.text == text && token.kind == TokenClass::control;
  });
  if (text.empty() || found == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - vocabulary.tokens.begin());
}

// A file of its own, or a text in the configuration, or the one of several that is named "default".
Result<std::string> hf_chat_template(const std::filesystem::path& folder,
                                     const VocabularyJson& said) {
  const std::filesystem::path file = folder / "chat_template.jinja";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return read_file(file, kMostOtherBytes);
  if (const VocabularyJson* const all = member(said, "chat_template");
      all != nullptr && all->is_array())
    for (const VocabularyJson& one : *all)
      if (word(one, "name") == "default") return word(one, "template");
  return word(said, "chat_template");
}

// A number, or a list of them.
void add_ends(Vocabulary& vocabulary, const VocabularyJson* value) {
  if (value == nullptr) return;
  const VocabularyJson list = value->is_array() ? *value : VocabularyJson::array({*value});
  for (const VocabularyJson& one : list) {
    if (!one.is_number_unsigned() || one.get<uint64_t>() >= vocabulary.tokens.size()) continue;
    const auto id = static_cast<TokenId>(one.get<uint64_t>());
    if (std::ranges::find(vocabulary.ends, id) == vocabulary.ends.end())
      vocabulary.ends.push_back(id);
  }
}

}  // namespace

Result<Vocabulary> parse_hf_vocabulary(std::string_view tokenizer_json, std::string_view where) {
  const VocabularyJson parsed = VocabularyJson::parse(tokenizer_json, nullptr, false);
  if (!parsed.is_object()) return bad_input("it is not a JSON object").within(where);
  Result<Vocabulary> read = HfVocabulary(parsed).read();
  if (!read.ok()) return std::move(read).error().within(where);
  return read;
}

Result<Vocabulary> hf_vocabulary(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  Vocabulary made =
      HONE_TRY(parse_hf_vocabulary(HONE_TRY(read_file(path, kMostTokenizerBytes)), path.native()));
  const VocabularyJson said = HONE_TRY(json_of(folder / "tokenizer_config.json"));
  made.begin = token_named(made, member(said, "bos_token"));
  made.end = token_named(made, member(said, "eos_token"));
  made.adds_begin = is_set(said, "add_bos_token");
  made.adds_end = is_set(said, "add_eos_token");
  // A model that reads in both directions has these around a text.
  if (const std::optional<TokenId> first = token_named(made, member(said, "cls_token"))) {
    made.begin = first;
    if (const std::optional<TokenId> last = token_named(made, member(said, "sep_token")))
      made.end = last;
    made.adds_begin = made.adds_end = true;
  }
  made.chat_template = HONE_TRY(hf_chat_template(folder, said));
  if (made.end) made.ends.push_back(*made.end);
  for (const char* file : {"generation_config.json", "config.json"}) {
    const VocabularyJson other = HONE_TRY(json_of(folder / file));
    add_ends(made, member(other, "eos_token_id"));
  }
  return made;
}

}  // namespace hone
