#include "rules/checker/checker.h"

#include <algorithm>

#include "base/text.h"
#include "rewrite/expand.h"
#include "rules/checker/forms.h"
#include "rules/statement.h"

namespace hone {

using namespace checker;  // NOLINT: this file is its face

namespace {

constexpr size_t kMaxProofSteps = 100000;
constexpr size_t kMaxProofBoxes = 2048;

Error refused(std::string_view why) { return check_failed("{}", why); }

// The head of a certificate: other symbols for those of the guard.
struct Made {
  std::string name;
  int64_t low = 0, high = 0, step = 1;
  std::string witness = "";
};

class Check {
 public:
  Check(const Rule& rule, const Certificate& certificate)
      : rule_(rule), certificate_(certificate), steps_({}) {}

  Status run() {
    if (certificate_.statement != statement_hash(rule_))
      return refused("the certificate is of another rule");
    HONE_TRY(check(rule_));
    HONE_TRY(read());
    for (Symbol s : rule_.symbols())
      HONE_TRY(given_.add_symbol(s.name(), s.min(), s.max(), s.multiple_of()));
    Bindings bindings;
    std::vector<Symbol> symbols = rule_.symbols();
    if (!made_.empty() || !bound_.empty()) {
      HONE_TRY(check_symbols());
      symbols = made_symbols();
    }
    for (const auto& [name, text] : bound_) bindings[name] = HONE_TRY(parse_dim(text, symbols));
    for (Symbol s : symbols)
      HONE_TRY(symbols_.add_symbol(s.name(), s.min(), s.max(), s.multiple_of()));
    const Graph left = HONE_TRY(primitive(rule_.left, bindings));
    const Graph right = HONE_TRY(primitive(rule_.right, bindings));
    if (left.output_types() != right.output_types()) return refused("the results differ in type");
    for (size_t o = 0; o < left.outputs().size(); ++o) HONE_TRY(result(left, right, o));
    if (steps_.peek() != nullptr) return refused("there are steps after the last result");
    return {};
  }

  size_t line() const { return certificate_.line + steps_.line(); }

 private:
  static Result<Graph> primitive(const Graph& graph, const Bindings& bindings) {
    const Graph bound = HONE_TRY(specialize(graph, bindings));
    return expand_composites(bound, [](Opcode) { return true; });
  }

  // ---- Reading ----

  static std::string_view take_word(std::string_view& text) {
    text = trim(text);
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    return word;
  }

  Status read() {
    std::vector<Step> steps;
    for (size_t i = 0; i < certificate_.steps.size(); ++i) {
      std::string_view rest = certificate_.steps[i];
      const std::string_view word = take_word(rest);
      Step step = {.word = std::string(word), .line = i + 1};
      if (word == "symbol") {
        HONE_TRY(read_symbol(rest));
      } else if (word == "bind") {
        const size_t equals = rest.find('=');
        if (equals == rest.npos) return refused("'bind' has no '='");
        if (!bound_.emplace(trim(rest.substr(0, equals)), trim(rest.substr(equals + 1))).second)
          return refused("a symbol is bound twice");
      } else if (word == "unrolled") {
        unrolls_ = true;
      } else if (word == "cut" || word == "digits") {
        step.position = static_cast<size_t>(HONE_TRY(parse_uint(take_word(rest))));
        const size_t by = rest.find(" by ");
        if ((word == "digits") != (by != rest.npos)) return refused("'digits' has one 'by'");
        step.at = trim(rest.substr(0, by));
        if (by != rest.npos) step.quotient = trim(rest.substr(by + 4));
        steps.push_back(std::move(step));
      } else if (word == "result" || word == "box") {
        if (!trim(rest).empty()) return refused("a line has more than one word");
        steps.push_back(std::move(step));
      } else {
        // Steps of one letter stand together.
        for (std::string_view letter = word; !letter.empty(); letter = take_word(rest)) {
          if (letter != "y" && letter != "n" && letter != "o" && letter != "s")
            return refused(fmt::format("'{}' is not a step", excerpt(letter)));
          steps.push_back({.word = std::string(letter), .line = i + 1});
        }
      }
      if (steps.size() > kMaxProofSteps) return over_limit("more than {} steps", kMaxProofSteps);
    }
    steps_ = Steps(std::move(steps));
    return {};
  }

  static Result<int64_t> parse_uint(std::string_view text) {
    const Result<int64_t> number = parse_int(text);
    if (!number.ok() || *number < 0)
      return refused(fmt::format("'{}' is not a place", excerpt(text)));
    return number;
  }

  // "q0 in 0..31 step 1 = K/2"
  Status read_symbol(std::string_view rest) {
    Made made = {.name = std::string(take_word(rest))};
    const bool is_in = take_word(rest) == "in";
    const std::string_view range = take_word(rest);
    const size_t dots = range.find("..");
    if (!is_in || dots == range.npos || !is_symbol_name(made.name))
      return refused("a symbol is 'symbol NAME in LOW..HIGH step STEP = SIZE'");
    made.low = HONE_TRY(parse_int(range.substr(0, dots)));
    made.high = HONE_TRY(parse_int(range.substr(dots + 2)));
    if (take_word(rest) != "step") return refused("a symbol has no step");
    made.step = HONE_TRY(parse_int(take_word(rest)));
    if (take_word(rest) != "=") return refused("a symbol has no size");
    made.witness = trim(rest);
    const bool is_range = -kDimLimit <= made.low && made.low <= made.high &&
                          made.high <= kDimLimit && made.step >= 1 && made.step <= kDimLimit;
    if (!is_range || floor_to(made.high, made.step) < made.low)
      return refused(fmt::format("symbol '{}' has no values", made.name));
    made_.push_back(std::move(made));
    return {};
  }
  static int64_t floor_to(int64_t value, int64_t step) {
    const int64_t rest = value % step;
    return value - (rest < 0 ? rest + step : rest);
  }

  // ---- The guard ----

  // The sizes that the guard admits are among those of the new symbols. The witnesses lie within
  // the ranges, and at them the bound values give back each symbol of the rule.
  Status check_symbols() {
    std::map<std::string, Whole> witnesses;
    for (const Made& made : made_) {
      const Whole witness = HONE_TRY(given_.parse(made.witness));
      if (!witnesses.emplace(made.name, witness).second)
        return refused(fmt::format("symbol '{}' is given twice", made.name));
      if (!HONE_TRY(is_implied(witness - made.low)) || !HONE_TRY(
                                                           is_implied(Whole(made.high) - witness)))
        return refused(fmt::format("the guard does not keep '{}' within its range", made.name));
      if (made.step != 1 && !given_.divide(witness, made.step).remainder.is(0))
        return refused(fmt::format("'{}' may not be a multiple of {}", made.name, made.step));
    }
    Atoms made_atoms;
    for (const Made& made : made_)
      HONE_TRY(made_atoms.add_symbol(made.name, made.low, made.high, made.step));
    for (Symbol s : rule_.symbols()) {
      const auto at = bound_.find(s.name());
      Whole value;
      if (at == bound_.end()) {
        if (!witnesses.contains(s.name())) return refused("a symbol has no value");
        value = witnesses.at(s.name());
      } else {
        value = HONE_TRY(at_witnesses(at->second, made_atoms, witnesses));
      }
      const Whole symbol = HONE_TRY(given_.parse(s.name()));
      if (!HONE_TRY(is_zero(symbol - value)))
        return refused(fmt::format("the guard does not say that {} = {}", s.name(),
                                   at == bound_.end() ? s.name() : at->second));
    }
    return {};
  }

  // The size with witnesses in the place of the new symbols. Divisions are read as they stand.
  Result<Whole> at_witnesses(const std::string& text, Atoms& made_atoms,
                             const std::map<std::string, Whole>& witnesses) {
    const Whole size = HONE_TRY(made_atoms.parse(text));
    Whole sum;
    for (const auto& [monomial, coefficient] : size.terms()) {
      Whole product = coefficient;
      for (uint32_t i : monomial) {
        const Atoms::Atom& atom = made_atoms[i];
        if (atom.kind != Atoms::symbol) return refused("what is bound has quotients");
        const std::optional<Whole> unit = witnesses.at(atom.name).divided_by(atom.step);
        if (!unit) return refused("a witness is not a multiple");
        product = product * *unit;
      }
      sum = sum + product;
    }
    return sum;
  }

  std::vector<Symbol> made_symbols() const {
    std::vector<Symbol> symbols;
    for (const Made& made : made_)
      symbols.push_back(Symbol::get(made.name, made.low, made.high, made.step));
    return symbols;
  }

  // The difference of the sides of conditions: right - left, which the guard says is 0, or at least
  // that.
  Result<std::vector<Whole>> differences(bool equal) {
    std::vector<Whole> all;
    for (const Condition& condition : rule_.guard) {
      if ((condition.relation == Relation::equal) != equal) continue;
      if (condition.relation == Relation::unequal) continue;
      const Whole left = HONE_TRY(given_.parse(condition.left.to_string()));
      const Whole right = HONE_TRY(given_.parse(condition.right.to_string()));
      all.push_back(right - left - Whole(condition.relation == Relation::less ? 1 : 0));
    }
    return all;
  }

  // a = 0: as it stands, or by up to three conditions.
  Result<bool> is_zero(const Whole& a) {
    const std::vector<Whole> zeros = HONE_TRY(differences(true));
    return is_sum_of(a, zeros, zeros.size() > 8 ? 1 : 3);
  }
  static bool is_sum_of(const Whole& a, const std::vector<Whole>& zeros, int depth) {
    if (a.is(0) || depth == 0) return a.is(0);
    return std::ranges::any_of(zeros, [&](const Whole& zero) {
      return is_sum_of(a - zero, zeros, depth - 1) || is_sum_of(a + zero, zeros, depth - 1);
    });
  }

  // a >= 0: by the ranges alone, or with one condition of the guard.
  Result<bool> is_implied(const Whole& a) {
    if (given_.is_never_negative(a)) return true;
    for (const Whole& zero : HONE_TRY(differences(true)))
      if (given_.is_never_negative(a - zero) || given_.is_never_negative(a + zero)) return true;
    for (const Whole& positive : HONE_TRY(differences(false)))
      if (given_.is_never_negative(a - positive)) return true;
    return false;
  }

  // ---- The proof ----

  Status result(const Graph& left, const Graph& right, size_t output) {
    const Step* step = steps_.next();
    if (step == nullptr || step->word != "result") return refused("a result has no steps");
    Place whole;
    for (Dim dim : left.type(left.outputs()[output]).dims()) {
      if (dim.is(1)) {
        whole.index.push_back(0);
        continue;
      }
      const Whole extent = HONE_TRY(symbols_.parse(dim.to_string()));
      whole.loops.push_back(symbols_.add_loop(extent));
      whole.index.push_back(Whole::atom(whole.loops.back()));
    }
    std::vector<Place> open = {std::move(whole)};
    for (size_t boxes = 0; !open.empty(); ++boxes) {
      if (boxes > kMaxProofBoxes) return over_limit("there are more than {} boxes", kMaxProofBoxes);
      const Place place = std::move(open.back());
      open.pop_back();
      step = steps_.next();
      if (step == nullptr) return refused("the steps end too early");
      if (step->word == "box") {
        HONE_TRY(box(left, right, output, place));
        continue;
      }
      if (step->word != "cut" && step->word != "digits")
        return refused("a step for a box is missing");
      std::vector<Place> parts = HONE_TRY(divided(place, *step, symbols_));
      std::ranges::move(parts, std::back_inserter(open));
    }
    return {};
  }

  Status box(const Graph& left, const Graph& right, size_t output, const Place& place) {
    std::map<uint32_t, std::string> names;
    for (uint32_t loop : place.loops) names[loop] = fmt::format("i{}", names.size());
    std::string texts[2];
    Form forms[2];
    for (int side = 0; side < 2; ++side) {
      const Graph& graph = side == 0 ? left : right;
      Speller speller(graph, symbols_, steps_, unrolls_);
      forms[side] = HONE_TRY(speller.element(graph.outputs()[output], place.index));
      texts[side] = HONE_TRY(text_of(forms[side], symbols_, names));
    }
    if (texts[0] != texts[1] && !HONE_TRY(is_zero_by_order(forms[0], forms[1], symbols_, names)))
      return refused(
          fmt::format("the sides differ: {} and {}", excerpt(texts[0]), excerpt(texts[1])));
    return {};
  }

  const Rule& rule_;
  const Certificate& certificate_;
  std::vector<Made> made_;
  std::map<std::string, std::string> bound_;
  bool unrolls_ = false;
  Steps steps_;
  Atoms given_;    // the symbols of the rule
  Atoms symbols_;  // those of the proof
};

}  // namespace

Status check_certificate(const Rule& rule, const Certificate& certificate) {
  Check check(rule, certificate);
  Status status = check.run();
  if (status.ok()) return status;
  return std::move(status).error().within(
      fmt::format("certificate of '{}', line {}", rule.name, check.line()));
}

Result<std::vector<Certificate>> parse_certificates(std::string_view text, std::string_view file) {
  std::vector<Certificate> all;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    const auto wrong = [&](std::string_view why) {
      return bad_input("{}:{}: {}", file, number, why);
    };
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    constexpr std::string_view kHead = "certificate @";
    if (!line.starts_with(kHead)) {
      if (all.empty()) return wrong("expected 'certificate @NAME HASH'");
      if (line.size() > 10000) return wrong("the line is too long");
      all.back().steps.emplace_back(line);
      continue;
    }
    line.remove_prefix(kHead.size());
    const size_t space = line.rfind(' ');
    const std::string_view digits = space == line.npos ? "" : line.substr(space + 1);
    uint64_t hash = 0;
    for (char c : digits) {
      const size_t digit = std::string_view("0123456789abcdef").find(c);
      if (digit == std::string_view::npos) return wrong("the hash is not of 16 hex digits");
      hash = hash << 4 | digit;
    }
    if (digits.size() != 16) return wrong("the hash is not of 16 hex digits");
    all.push_back({.rule = std::string(trim(line.substr(0, space))),
                   .statement = hash,
                   .line = number,
                   .steps = {}});
  }
  return all;
}

}  // namespace hone
