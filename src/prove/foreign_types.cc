#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "prove/foreign.h"

namespace hone {
namespace {

constexpr int64_t kMaxNumber = 64;  // of a parameter
constexpr int kMaxRank = 8;
constexpr int64_t kDefaultKernel = 3;

// A size: a sum of unknowns and a number.
struct Size {
  std::map<int, int64_t> parts = {};
  int64_t constant = 0;
};

// Larger ones are no sizes of anything.
int64_t bounded(__int128 number) {
  constexpr __int128 kLargest = int64_t{1} << 40;
  return static_cast<int64_t>(std::clamp(number, -kLargest, kLargest));
}

Size scaled(Size a, int64_t by) {
  for (auto& [unknown, factor] : a.parts) factor = bounded(static_cast<__int128>(factor) * by);
  a.constant = bounded(static_cast<__int128>(a.constant) * by);
  return a;
}
Size negated(Size a) { return scaled(std::move(a), -1); }
Size operator+(Size a, const Size& b) {
  for (const auto& [unknown, factor] : b.parts)
    if ((a.parts[unknown] = bounded(a.parts[unknown] + factor)) == 0) a.parts.erase(unknown);
  a.constant = bounded(a.constant + b.constant);
  return a;
}
Size unknown_size(int unknown) { return {.parts = {{unknown, 1}}, .constant = 0}; }
Size fixed(int64_t number) { return {.parts = {}, .constant = number}; }

// Sizes that are to be equal are made so.
class Sizes {
 public:
  Size fresh() {
    bound_.emplace_back();
    return unknown_size(static_cast<int>(bound_.size()) - 1);
  }

  Size resolved(const Size& size) const {
    Size all = fixed(size.constant);
    for (const auto& [unknown, factor] : size.parts) {
      const auto& bound = bound_[static_cast<size_t>(unknown)];
      all = all + scaled(bound ? resolved(*bound) : unknown_size(unknown), factor);
    }
    return all;
  }

  Status unify(const Size& a, const Size& b) {
    const Size rest = resolved(a + negated(b));
    if (rest.parts.empty())
      return rest.constant == 0 ? Status() : bad_input("no sizes fit all of its ops");
    std::vector<int> above, below;
    bool is_simple = true;
    for (const auto& [unknown, factor] : rest.parts) {
      is_simple = is_simple && std::abs(factor) == 1;
      (factor > 0 ? above : below).push_back(unknown);
    }
    // An unknown alone on its side is the other side.
    for (const int sign : {1, -1}) {
      const std::vector<int>& alone = sign > 0 ? above : below;
      if (alone.size() != 1 || rest.parts.at(alone[0]) != sign) continue;
      const bool is_number = rest.parts.size() == 1;
      if (is_number && -sign * rest.constant < 1) return bad_input("no sizes fit all of its ops");
      Size other = sign > 0 ? negated(rest) : rest;
      other.parts.erase(alone[0]);
      bound_[static_cast<size_t>(alone[0])] = other;
      return {};
    }
    // A sum equals a sum: the first parts are one.
    if (!is_simple || above.empty() || below.empty())
      return bad_input("no sizes fit all of its ops");
    bound_[static_cast<size_t>(above[0])] = unknown_size(below[0]);
    return unify(a, b);
  }

 private:
  std::vector<std::optional<Size>> bound_;
};

// Where a dim was joined of two parts.
struct Joint {
  Size first, second;
  std::shared_ptr<const Joint> of_first, of_second;
};
using JointRef = std::shared_ptr<const Joint>;

struct Shape {
  std::vector<Size> dims;
  std::vector<JointRef> joints;  // of each dim, or null
};

// The operands of a word.
struct Word {
  std::string_view text;
  size_t operands;  // concat: at least
  size_t parameters;
  std::string_view op = "";  // of elementwise ones: hone's
};

constexpr Word kWords[] = {{"ewadd", 2, 0, "add"}, {"ewsub", 2, 0, "sub"},
                           {"ewmul", 2, 0, "mul"}, {"ewdiv", 2, 0, "div"},
                           {"ewmax", 2, 0, "max"}, {"ewmin", 2, 0, "min"},
                           {"relu", 1, 0, "relu"}, {"sigmoid", 1, 0, "logistic"},
                           {"tanh", 1, 0, "tanh"}, {"exp", 1, 0, "exp"},
                           {"smul", 2, 0},         {"matmul", 2, 1},
                           {"conv2d", 2, 4},       {"poolmax", 1, 6},
                           {"enlarge", 1, 2},      {"concat", 2, 2},
                           {"split", 1, 1},        {"split_0", 1, 0},
                           {"split_1", 1, 0},      {"transpose", 1, 1}};

Result<Word> word_of(const ForeignTerm& term) {
  for (const Word& word : kWords) {
    if (word.text != term.op) continue;
    const bool takes_more = word.text == "concat";
    if (term.operands.size() < word.operands ||
        (term.operands.size() > word.operands && !takes_more))
      return bad_input("'{}' takes {} operands, not {}", term.op, word.operands,
                       term.operands.size());
    if (term.parameters.size() < word.parameters)
      return bad_input("'{}' takes {} numbers, not {}", term.op, word.parameters,
                       term.parameters.size());
    for (int64_t number : term.parameters)
      if (number < 0 || number > kMaxNumber)
        return bad_input("'{}' has the number {}; numbers are 0 to {}", term.op, number,
                         kMaxNumber);
    return word;
  }
  return unsupported("hone has no rule for '{}'", term.op);
}

std::string activation_of(const ForeignTerm& term, size_t at) {
  constexpr std::string_view kOps[] = {"", "logistic", "relu", "tanh"};
  return std::string(kOps[static_cast<size_t>(std::min<int64_t>(term.parameters[at], 3))]);
}

class Typing {
 public:
  explicit Typing(const ForeignRule& rule) : rule_(rule) {}

  std::string assumed;  // what the sizes say that the rule does not

  Result<std::string> text() {
    HONE_TRY(ranks());
    for (const ForeignSide* side : {&rule_.left, &rule_.right})
      for (size_t t = 0; t < side->terms.size(); ++t)
        HONE_TRY(shape(*side, side->terms[t], at(*side, t)));
    for (size_t r = 0; r < rule_.left.results.size(); ++r)
      HONE_TRY(
          same(at(rule_.left, rule_.left.results[r]), at(rule_.right, rule_.right.results[r])));
    for (const Size& size : kernels_)
      if (const Size now = sizes_.resolved(size); !now.parts.empty())
        HONE_TRY(sizes_.unify(now, fixed(kDefaultKernel)));
    const std::string left = HONE_TRY(body(rule_.left)), right = HONE_TRY(body(rule_.right));
    const std::string head = HONE_TRY(inputs());
    std::string where;
    for (const auto& [unknown, name] : names_)
      where += fmt::format("{}{} in 1..1024", where.empty() ? " where " : ", ", name);
    return fmt::format("rule @{}({}){} {{\n{}}} => {{\n{}}}\n", rule_.name, head, where, left,
                       right);
  }

 private:
  // ---- Ranks: values that have one rank are one class -------------------------------------------

  size_t at(const ForeignSide& side, size_t term) { return nodes_.at({&side, term}); }

  size_t class_of(size_t node) const {
    while (parents_[node] != node) node = parents_[node];
    return node;
  }
  Status join(size_t a, size_t b) {
    a = class_of(a);
    b = class_of(b);
    if (a == b) return {};
    parents_[b] = a;
    return ranks_[b] ? set_rank(a, *ranks_[b]) : Status();
  }
  Status set_rank(size_t node, int rank) {
    std::optional<int>& known = ranks_[class_of(node)];
    if (known && *known != rank) return bad_input("a value has {} and {} dims", *known, rank);
    if (rank > kMaxRank) return bad_input("a value has {} dims", rank);
    known = rank;
    return {};
  }

  Status ranks() {
    if (rule_.left.results.size() != rule_.right.results.size())
      return bad_input("the left side has {} results, the right one {}", rule_.left.results.size(),
                       rule_.right.results.size());
    std::map<std::string, size_t> variables;
    for (const ForeignSide* side : {&rule_.left, &rule_.right})
      for (size_t t = 0; t < side->terms.size(); ++t) {
        const ForeignTerm& term = side->terms[t];
        size_t node = parents_.size();
        if (term.op.empty()) node = variables.emplace(term.name, node).first->second;
        nodes_[{side, t}] = node;
        if (node < parents_.size()) continue;
        parents_.push_back(node);
        ranks_.emplace_back();
        if (term.op.empty()) inputs_.push_back({term.name, node});
      }
    for (const ForeignSide* side : {&rule_.left, &rule_.right})
      for (size_t t = 0; t < side->terms.size(); ++t)
        if (!side->terms[t].op.empty()) HONE_TRY(ranks_of(*side, side->terms[t], at(*side, t)));
    for (size_t r = 0; r < rule_.left.results.size(); ++r)
      HONE_TRY(
          join(at(rule_.left, rule_.left.results[r]), at(rule_.right, rule_.right.results[r])));
    shapes_.resize(parents_.size());
    for (const auto& [name, node] : inputs_) {
      const int rank = ranks_[class_of(node)].value_or(2);
      for (int i = 0; i < rank; ++i) shapes_[node].dims.push_back(sizes_.fresh());
      shapes_[node].joints.resize(static_cast<size_t>(rank));
    }
    return {};
  }

  Status ranks_of(const ForeignSide& side, const ForeignTerm& term, size_t node) {
    const Word word = HONE_TRY(word_of(term));
    for (size_t o = 0; o < term.operands.size(); ++o) {
      const size_t operand = at(side, term.operands[o]);
      if (word.text == "smul" && o == 1) {
        HONE_TRY(set_rank(operand, 0));
        continue;
      }
      HONE_TRY(join(node, operand));
    }
    const bool is_image = word.text == "conv2d" || word.text == "poolmax" || word.text == "enlarge";
    if (is_image) return set_rank(node, 4);
    if (word.text == "concat") return set_rank(node, static_cast<int>(term.parameters[1]));
    if (word.text == "transpose" && term.parameters.size() > 2)
      return set_rank(node, static_cast<int>(term.parameters.size()) - 1);
    return {};
  }

  // ---- Shapes -----------------------------------------------------------------------------------

  Status same(size_t a, size_t b) {
    const Shape& left = shapes_[a];
    const Shape& right = shapes_[b];
    if (left.dims.size() != right.dims.size()) return bad_input("values have different ranks");
    for (size_t i = 0; i < left.dims.size(); ++i)
      HONE_TRY(sizes_.unify(left.dims[i], right.dims[i]));
    return {};
  }

  Result<size_t> axis_of(int64_t axis, const Shape& shape) {
    if (axis >= static_cast<int64_t>(shape.dims.size()))
      return bad_input("axis {} of a value of {} dims", axis, shape.dims.size());
    return static_cast<size_t>(axis);
  }

  Status shape(const ForeignSide& side, const ForeignTerm& term, size_t node) {
    if (term.op.empty()) return {};
    const Word word = HONE_TRY(word_of(term));
    std::vector<size_t> x;
    for (size_t operand : term.operands) x.push_back(at(side, operand));
    Shape& result = shapes_[node];
    result = shapes_[x[0]];
    if (!word.op.empty()) {
      for (size_t i = 1; i < x.size(); ++i) {
        HONE_TRY(same(x[0], x[i]));
        for (size_t d = 0; d < result.joints.size(); ++d)
          if (result.joints[d] == nullptr) result.joints[d] = shapes_[x[i]].joints[d];
      }
      return {};
    }
    if (word.text == "matmul") return matmul(x, result);
    if (word.text == "conv2d") return conv(term, x, node, result);
    if (word.text == "poolmax") return pool(term, result);
    if (word.text == "enlarge") return enlarge(term, result);
    if (word.text == "concat") return concat(term, x, result);
    if (word.text == "split") return split(term, result);
    if (word.text == "split_0" || word.text == "split_1")
      return part(side.terms[term.operands[0]], word.text == "split_0", result);
    if (word.text == "transpose") return transpose(term, x[0], result);
    return {};  // smul
  }

  Status matmul(const std::vector<size_t>& x, Shape& result) {
    const Shape& a = shapes_[x[0]];
    const Shape& b = shapes_[x[1]];
    const size_t rank = a.dims.size();
    if (rank < 2 || rank > 3) return unsupported("products of values of {} dims", rank);
    for (size_t d = 0; d + 2 < rank; ++d) HONE_TRY(sizes_.unify(a.dims[d], b.dims[d]));
    HONE_TRY(sizes_.unify(a.dims[rank - 1], b.dims[rank - 2]));
    result.dims[rank - 1] = b.dims[rank - 1];
    result.joints[rank - 1] = b.joints[rank - 1];
    return {};
  }

  // TASO tells the number of groups by the channels. Rules that need groups are true if each has as
  // many features.
  Status channels(const Shape& input, const Shape& kernel, size_t node) {
    constexpr int64_t kMaxGroups = 8;
    for (int64_t groups = 2; groups <= kMaxGroups; ++groups) {
      const Size rest = sizes_.resolved(input.dims[1] + scaled(kernel.dims[1], -groups));
      if (!rest.parts.empty() || rest.constant != 0) continue;
      const JointRef joint = kernel.joints[0];
      if (groups > 2 || joint == nullptr)
        return unsupported("{} groups, since where their features are is not told", groups);
      HONE_TRY(sizes_.unify(joint->first, joint->second));
      groups_[node] = groups;
      assumed = fmt::format("where {} groups have equal parts", groups);
      return {};
    }
    return sizes_.unify(input.dims[1], kernel.dims[1]);
  }

  Status conv(const ForeignTerm& term, const std::vector<size_t>& x, size_t node, Shape& result) {
    const Shape& input = shapes_[x[0]];
    const Shape& kernel = shapes_[x[1]];
    if (term.parameters[0] != 1 || term.parameters[1] != 1)
      return unsupported("strides, since where padding lies is not told");
    HONE_TRY(channels(input, kernel, node));
    result.dims[1] = kernel.dims[0];
    result.joints[1] = kernel.joints[0];
    result.joints[2] = result.joints[3] = nullptr;
    for (size_t d : {size_t{2}, size_t{3}}) {
      if (term.parameters.size() > d + 2)
        HONE_TRY(sizes_.unify(kernel.dims[d], fixed(term.parameters[d + 2])));
      kernels_.push_back(kernel.dims[d]);
      if (term.parameters[2] == 0) continue;
      result.dims[d] = sizes_.fresh();
      HONE_TRY(sizes_.unify(input.dims[d], result.dims[d] + kernel.dims[d] + fixed(-1)));
    }
    return {};
  }

  Status pool(const ForeignTerm& term, Shape& result) {
    if (term.parameters[2] != 1 || term.parameters[3] != 1)
      return unsupported("strides, since where padding lies is not told");
    for (size_t d : {size_t{2}, size_t{3}}) {
      const int64_t window = term.parameters[d - 2];
      if (window < 1) return bad_input("a window of {} places", window);
      result.joints[d] = nullptr;
      if (term.parameters[4] == 0) continue;
      const Size size = sizes_.fresh();
      HONE_TRY(sizes_.unify(result.dims[d], size + fixed(window - 1)));
      result.dims[d] = size;
    }
    return {};
  }

  Status enlarge(const ForeignTerm& term, Shape& result) {
    for (size_t d : {size_t{2}, size_t{3}}) {
      if (term.parameters[d - 2] % 2 == 0) return unsupported("kernels of even size");
      HONE_TRY(sizes_.unify(result.dims[d], fixed(1)));
      result.dims[d] = fixed(term.parameters[d - 2]);
      result.joints[d] = nullptr;
    }
    return {};
  }

  Status concat(const ForeignTerm& term, const std::vector<size_t>& x, Shape& result) {
    const size_t axis = HONE_TRY(axis_of(term.parameters[0], result));
    for (size_t i = 1; i < x.size(); ++i) {
      const Shape& next = shapes_[x[i]];
      for (size_t d = 0; d < result.dims.size(); ++d) {
        if (d != axis) {
          HONE_TRY(sizes_.unify(result.dims[d], next.dims[d]));
          if (result.joints[d] == nullptr) result.joints[d] = next.joints[d];
          continue;
        }
        result.joints[d] = std::make_shared<const Joint>(
            Joint{result.dims[d], next.dims[d], result.joints[d], next.joints[d]});
        result.dims[d] = result.dims[d] + next.dims[d];
      }
    }
    return {};
  }

  // The parts of a value that was not joined are any.
  Status split(const ForeignTerm& term, Shape& result) {
    const size_t axis = HONE_TRY(axis_of(term.parameters[0], result));
    if (result.joints[axis] != nullptr) return {};
    const Size first = sizes_.fresh(), second = sizes_.fresh();
    HONE_TRY(sizes_.unify(result.dims[axis], first + second));
    result.joints[axis] = std::make_shared<const Joint>(Joint{first, second, nullptr, nullptr});
    return {};
  }

  Status part(const ForeignTerm& split, bool is_first, Shape& result) {
    if (split.op != "split") return bad_input("a part of what is not split");
    const size_t axis = HONE_TRY(axis_of(split.parameters[0], result));
    const JointRef joint = result.joints[axis];
    result.dims[axis] = is_first ? joint->first : joint->second;
    result.joints[axis] = is_first ? joint->of_first : joint->of_second;
    return {};
  }

  // Without a permutation the two dims of a matrix change places.
  static std::vector<int64_t> permutation_of(const ForeignTerm& term, size_t rank) {
    if (term.parameters.size() > 2) return {term.parameters.begin(), term.parameters.end() - 1};
    std::vector<int64_t> permutation(rank);
    for (size_t i = 0; i < rank; ++i) permutation[i] = static_cast<int64_t>(rank - 1 - i);
    return permutation;
  }

  Status transpose(const ForeignTerm& term, size_t x, Shape& result) {
    const Shape from = shapes_[x];
    const std::vector<int64_t> permutation = permutation_of(term, from.dims.size());
    if (permutation.size() != from.dims.size())
      return bad_input("a permutation of {} of {} dims", permutation.size(), from.dims.size());
    for (size_t d = 0; d < permutation.size(); ++d) {
      const size_t axis = HONE_TRY(axis_of(permutation[d], from));
      result.dims[d] = from.dims[axis];
      result.joints[d] = from.joints[axis];
    }
    return {};
  }

  // ---- Text -------------------------------------------------------------------------------------

  Result<std::string> size_text(const Size& size) {
    const Size now = sizes_.resolved(size);
    if (now.constant < 0 || std::ranges::any_of(now.parts, [](auto& p) { return p.second < 0; }))
      return bad_input("no sizes fit all of its ops");
    std::string text;
    for (const auto& [unknown, factor] : now.parts) {
      std::string& name = names_[unknown];
      if (name.empty())
        name = names_.size() <= 26 ? std::string(1, static_cast<char>('A' + names_.size() - 1))
                                   : fmt::format("S{}", names_.size());
      text += fmt::format("{}{}*{}", text.empty() ? "" : " + ", factor, name);
    }
    if (now.constant > 0 || text.empty())
      text += fmt::format("{}{}", text.empty() ? "" : " + ", now.constant);
    return text;
  }

  Result<std::string> dims_text(const std::vector<Size>& dims) {
    std::vector<std::string> pieces;
    for (const Size& size : dims) pieces.push_back(HONE_TRY(size_text(size)));
    return fmt::format("{}", fmt::join(pieces, ", "));
  }

  Result<int64_t> number_of(const Size& size) {
    const Size now = sizes_.resolved(size);
    if (!now.parts.empty() || now.constant < 1) return unsupported("kernels of any size");
    return now.constant;
  }

  static std::string name_of(std::string_view variable) { return fmt::format("%v_{}", variable); }

  Result<std::string> inputs() {
    std::vector<std::string> pieces;
    for (const auto& [name, node] : inputs_)
      pieces.push_back(fmt::format("{}: f32[{}]", name_of(name),
                                   HONE_TRY(dims_text(shapes_[node].dims))));
    return fmt::format("{}", fmt::join(pieces, ", "));
  }

  Result<std::string> body(const ForeignSide& side) {
    std::string text;
    const auto label = [&](size_t t) {
      return side.terms[t].op.empty() ? name_of(side.terms[t].name) : fmt::format("%t{}", t);
    };
    for (size_t t = 0; t < side.terms.size(); ++t) {
      const ForeignTerm& term = side.terms[t];
      if (term.op.empty() || term.op == "split") continue;
      std::vector<std::string> x;
      for (size_t operand : term.operands) {
        const bool is_part = term.op == "split_0" || term.op == "split_1";
        x.push_back(label(is_part ? side.terms[operand].operands[0] : operand));
      }
      text += HONE_TRY(line(side, term, at(side, t), label(t), x));
    }
    std::vector<std::string> results;
    for (size_t r : side.results) {
      if (side.terms[r].op == "split") return bad_input("a split as a result");
      results.push_back(label(r));
    }
    return text + fmt::format("  return {}\n", fmt::join(results, ", "));
  }

  Result<std::string> line(const ForeignSide& side, const ForeignTerm& term, size_t node,
                           const std::string& name, const std::vector<std::string>& x) {
    const Word word = HONE_TRY(word_of(term));
    const Shape& shape = shapes_[node];
    std::string made, activation;
    if (!word.op.empty()) {
      made = fmt::format("{} {}", word.op, fmt::join(x, ", "));
    } else if (word.text == "smul") {
      return fmt::format(
          "  {0}_s = broadcast {1} {{dims = [{2}], map = []}}\n  {0} = mul {3}, {0}_s\n", name,
          x[1], HONE_TRY(dims_text(shape.dims)), x[0]);
    } else if (word.text == "matmul") {
      made = shape.dims.size() == 2
                 ? fmt::format("dot {}, {} {{lhs_contract = [1], rhs_contract = [0]}}", x[0], x[1])
                 : fmt::format(
                       "dot {}, {} {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], "
                       "rhs_contract = [1]}}",
                       x[0], x[1]);
      activation = activation_of(term, 0);
    } else if (word.text == "conv2d") {
      const Shape& kernel = shapes_[at(side, term.operands[1])];
      const int64_t h = HONE_TRY(number_of(kernel.dims[2])), w = HONE_TRY(
                                                                 number_of(kernel.dims[3]));
      const auto groups = groups_.find(node);
      const std::string attrs =
          groups == groups_.end() ? "" : fmt::format("groups = {}, ", groups->second);
      made =
          fmt::format("conv {}, {} {{{}pad_low = [{}], pad_high = [{}]}}", x[0], x[1], attrs,
                      HONE_TRY(padding(term.parameters[2], "", h, w)),
                      HONE_TRY(padding(term.parameters[2], "", h, w)));
      activation = activation_of(term, 3);
    } else if (word.text == "poolmax") {
      const int64_t h = term.parameters[0], w = term.parameters[1];
      const std::string pad = HONE_TRY(padding(term.parameters[4], "0, 0, ", h, w));
      made = fmt::format(
          "window_reduce {} {{kind = max, window = [1, 1, {}, {}], pad_low = [{}], pad_high = "
          "[{}]}}",
          x[0], h, w, pad, pad);
      activation = activation_of(term, 5);
    } else if (word.text == "enlarge") {
      const int64_t h = term.parameters[0] / 2, w = term.parameters[1] / 2;
      made =
          fmt::format("pad {0}, 0 {{low = [0, 0, {1}, {2}], high = [0, 0, {1}, {2}]}}", x[0], h, w);
    } else if (word.text == "concat") {
      made = fmt::format("concat {} {{axis = {}}}", fmt::join(x, ", "), term.parameters[0]);
    } else if (word.text == "transpose") {
      made = fmt::format("transpose {} {{permutation = [{}]}}", x[0],
                         fmt::join(permutation_of(term, shape.dims.size()), ", "));
    } else {
      const ForeignTerm& split = side.terms[term.operands[0]];
      const Shape& whole = shapes_[at(side, term.operands[0])];
      const size_t axis = HONE_TRY(axis_of(split.parameters[0], whole));
      std::vector<Size> start(whole.dims.size(), fixed(0)), limit = whole.dims;
      (word.text == "split_0" ? limit : start)[axis] = whole.joints[axis]->first;
      made = fmt::format("slice {} {{start = [{}], limit = [{}]}}", x[0],
                         HONE_TRY(dims_text(start)), HONE_TRY(dims_text(limit)));
    }
    if (activation.empty()) return fmt::format("  {} = {}\n", name, made);
    return fmt::format("  {0}_a = {1}\n  {0} = {2} {0}_a\n", name, made, activation);
  }

  // Both sides have as much padding: that to the same size, or none.
  static Result<std::string> padding(int64_t mode, std::string_view before, int64_t h, int64_t w) {
    if (mode != 0) return fmt::format("{}0, 0", before);
    if (h % 2 == 0 || w % 2 == 0)
      return unsupported("windows of even size, since where padding lies is not told");
    return fmt::format("{}{}, {}", before, h / 2, w / 2);
  }

  const ForeignRule& rule_;
  std::map<std::pair<const ForeignSide*, size_t>, size_t> nodes_;
  std::vector<std::pair<std::string, size_t>> inputs_;
  std::vector<size_t> parents_;
  std::vector<std::optional<int>> ranks_;
  Sizes sizes_;
  std::vector<Shape> shapes_;
  std::vector<Size> kernels_;
  std::map<size_t, int64_t> groups_;  // of convolutions that have some
  std::map<int, std::string> names_;  // of unknowns that are left
};

}  // namespace

Result<TypedRule> typed_rule(const ForeignRule& rule) {
  Typing typing(rule);
  const std::string text = HONE_TRY(typing.text());
  std::vector<Rule> rules = HONE_TRY(parse_rules(text, {.file = rule.name}));
  return TypedRule{std::move(rules[0]), typing.assumed};
}

}  // namespace hone
