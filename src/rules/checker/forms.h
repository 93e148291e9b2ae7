#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/access.h"
#include "ir/graph.h"
#include "rules/checker/whole.h"

// An element of a value as a sum of products, spelled out along the steps of a certificate.

namespace hone::checker {

struct Factor;

struct Term {
  Whole factor = 1;
  std::vector<uint32_t> bound = {};  // loops
  std::vector<Whole> guards = {};    // that are >= 0, or the term counts as nothing
  std::vector<std::shared_ptr<const Factor>> factors = {};
};
using Form = std::vector<Term>;

struct Member {
  std::vector<uint32_t> bound = {};
  std::vector<Whole> guards = {};
  Form value = {};
};

struct Factor {
  enum Kind : uint8_t { element, function, largest } kind;
  std::string key = "";
  std::vector<Whole> index = {};    // of an element
  std::vector<Form> operands = {};  // of a function
  std::vector<Member> set = {};     // of a largest
  bool is_bool = false;             // 1 or 0
};

// A step of a certificate; docs/rules.md says what each means.
struct Step {
  std::string word;
  size_t position = 0;                 // of cut and digits
  std::string at = "", quotient = "";  // sizes
  size_t line = 0;
};

// The steps in the order in which they are taken.
class Steps {
 public:
  explicit Steps(std::vector<Step> steps) : steps_(std::move(steps)) {}
  const Step* next() { return at_ < steps_.size() ? &steps_[at_++] : nullptr; }
  const Step* peek() const { return at_ < steps_.size() ? &steps_[at_] : nullptr; }
  size_t line() const { return at_ == 0 ? 0 : steps_[at_ - 1].line; }

 private:
  std::vector<Step> steps_;
  size_t at_ = 0;
};

Error refused(std::string_view why);
Form single(Factor factor);
Form plus(Form a, Form b);
Form times(Form form, const Whole& factor);
Form opposite(const Form& a);  // of a bool

// Some loops and what they stand for.
struct Place {
  std::vector<Whole> index = {};
  std::vector<uint32_t> loops = {};
};
// The place with one loop divided as the step says; a cut gives two. An error: the parts would not
// be all of it, or would be more.
Result<std::vector<Place>> divided(const Place& place, const Step& step, Atoms& atoms);

// Spells out elements of one graph of primitive ops.
class Speller {
 public:
  Speller(const Graph& graph, Atoms& atoms, Steps& steps, bool unrolls)
      : graph_(graph), atoms_(atoms), steps_(steps), unrolls_(unrolls) {}

  Result<Form> element(ValueId v, const std::vector<Whole>& index);

 private:
  struct FormAlgebra;

  Result<Form> constant(const Tensor& tensor, const std::vector<Whole>& index);
  Result<Form> pointwise(NodeId n, const std::vector<Whole>& index);
  Result<Form> moved(NodeId n, const AccessRelation& relation, const std::vector<Whole>& index);
  Result<Form> reduced(NodeId n, const AccessRelation& relation, const std::vector<Whole>& index);
  Result<std::vector<Member>> points(NodeId n, const AccessRelation& relation, const Place& place,
                                     std::span<const Dim> extents);
  Result<std::vector<Member>> points(NodeId n, const AccessRelation& relation, const Place& place);
  Result<std::vector<Member>> point(NodeId n, const AccessRelation& relation, const Place& place);
  Result<Form> read(ValueId v, const Access& access, const std::vector<Whole>& index);
  // The word of a step about a bound: y, it holds; n, it does not; o, it is open and goes to
  // `open`.
  Result<bool> may_hold(const Whole& bound, std::vector<Whole>& open);
  Result<bool> may_read(const Access& access, const std::vector<Whole>& index,
                        std::vector<Whole>& open);
  Result<Whole> position(const IndexExpr& expr, const std::vector<Whole>& index);
  Result<Whole> size(Dim dim);
  // Bools are numbers: p*x + (1 - p)*y chooses (choices.cc).
  Result<Form> compared(NodeId n, const std::vector<Whole>& index);
  Result<Form> compared_places(std::string_view direction, const Whole& difference);
  Result<Form> sign(const Form& form);
  Result<Form> collected(const Form& form);
  Result<std::optional<Form>> as_largest(const Form& p, const Form& yes, const Form& no);
  Result<Form> chosen(NodeId n, const std::vector<Whole>& index);
  Status drop_powers(Term& term);
  void put_known(Term& term);
  Result<Form> largest_of(std::vector<Member> members);
  Result<Form> product(const Form& a, const Form& b);
  Result<Form> inverse(const Form& a);
  Result<Form> exp_of(const Form& a, int64_t sign);
  Status drop_exps(Term& term);

  const Graph& graph_;
  Atoms& atoms_;
  Steps& steps_;
  bool unrolls_;
  size_t work_ = 0;
};

// True if left - right is 0 by the laws of sums and maxima.
Result<bool> is_zero_by_order(const Form& left, const Form& right, const Atoms& atoms,
                              const std::map<uint32_t, std::string>& names);

// One text for forms that differ by names of loops, by order, and by terms that cancel.
// names: of loops that are free.
Result<std::string> text_of(const Form& form, const Atoms& atoms,
                            const std::map<uint32_t, std::string>& names);

}  // namespace hone::checker
