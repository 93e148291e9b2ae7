#include "rewrite/raise/guess.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace hone {

bool Guess::propose(Op op, std::vector<Form> operands, ExpandFn form) {
  while (!operands.empty() && operands.back() == kNoForm) operands.pop_back();
  for (Form f : operands)
    if (f != kNoForm && !available_(f)) return false;
  std::vector<Form> results = forms.of_composite(op, operands, form);
  if (std::ranges::find(results, root) == results.end()) return false;
  match_ = {op, std::move(operands), std::move(results)};
  return true;
}

Form Guess::core(Form f) const {
  while (is(f, Opcode::reshape) || is(f, Opcode::broadcast)) f = operand(f, 0);
  return f;
}

Form Guess::beside(Form f, double number) const {
  for (size_t i = 0; i < 2; ++i)
    if (forms.is_splat(operand(f, i), number)) return operand(f, 1 - i);
  return kNoForm;
}

std::optional<std::pair<Form, double>> Guess::beside_splat(Form f) const {
  for (size_t i = 0; i < 2; ++i) {
    if (forms.is(operand(f, i), FormKind::splat))
      return std::pair(operand(f, 1 - i), forms.number(operand(f, i)));
  }
  return std::nullopt;
}

std::vector<Form> Guess::factors(Form f, Opcode opcode) const {
  std::vector<Form> found;
  for (Form x : forms.factors(f).list)
    if (is(x, opcode)) found.push_back(x);
  return found;
}

std::vector<Form> Guess::factors_with_core(Form f, Opcode opcode) const {
  std::vector<Form> found;
  for (Form x : forms.factors(f).list)
    if (is(core(x), opcode)) found.push_back(x);
  return found;
}

Form Guess::divided(Form whole, Form part) {
  Factors rest = forms.factors(whole);
  const Factors out = forms.factors(part);
  if (!is_real(forms.type(whole).dtype())) return kNoForm;
  for (Form f : out.list) {
    auto at = std::ranges::find(rest.list, f);
    if (at == rest.list.end()) return kNoForm;
    rest.list.erase(at);
  }
  rest.number /= out.number;
  return forms.product(forms.type(whole), std::move(rest));
}

Form Guess::negated(Form f) {
  const Factors factors = forms.factors(f);
  return factors.number == -1 ? forms.scaled(f, -1) : kNoForm;
}

Form Guess::square_root(Form f) {
  const Factors factors = forms.factors(f);
  if (factors.list.empty() || factors.list.size() % 2 != 0 || factors.number < 0) return kNoForm;
  Factors half{std::sqrt(factors.number), {}};
  for (size_t i = 0; i < factors.list.size(); i += 2) {
    if (factors.list[i] != factors.list[i + 1]) return kNoForm;
    half.list.push_back(factors.list[i]);
  }
  return forms.product(forms.type(f), std::move(half));
}

Form Guess::unbroadcast(Form f, const Dims& dims, const Ints& map) {
  const Type from = forms.type(f);
  const Type type = from.with_dims(dims);
  if (forms.is(f, FormKind::splat)) return forms.splat(type, forms.number(f));
  if (forms.is(f, FormKind::product)) {
    Factors factors = forms.factors(f);
    for (Form& x : factors.list) {
      x = unbroadcast(x, dims, map);
      if (x == kNoForm) return kNoForm;
    }
    return forms.product(type, std::move(factors));
  }
  Ints covered;  // dims of `f` that its core has
  Form inner = f;
  if (is(f, Opcode::broadcast)) {
    covered = forms.op(f).ints("map");
    inner = operand(f, 0);
  } else {
    Dims kept;
    for (int i = 0; i < from.rank(); ++i) {
      if (from.dim(i).is(1)) continue;
      covered.push_back(i);
      kept.push_back(from.dim(i));
    }
    inner = forms.reshape(f, kept);
  }
  Ints inner_map;
  for (int64_t dim : covered) {
    auto at = std::ranges::find(map, dim);
    if (at == map.end()) return kNoForm;
    const size_t place = static_cast<size_t>(at - map.begin());
    if (!(dims[place] == from.dim(static_cast<int>(dim)))) return kNoForm;
    inner_map.push_back(static_cast<int64_t>(place));
  }
  return forms.broadcast(inner, dims, inner_map);
}

std::vector<Form> Guess::numpy_operands(Form f) {
  const Type type = forms.type(f);
  const int rank = type.rank();
  std::vector<bool> covered(static_cast<size_t>(rank), false);
  if (is(f, Opcode::broadcast)) {
    for (int64_t dim : forms.op(f).ints("map")) covered[static_cast<size_t>(dim)] = true;
  } else if (!forms.is(f, FormKind::splat)) {
    covered.assign(static_cast<size_t>(rank), true);
  }
  const int first = static_cast<int>(std::ranges::find(covered, true) - covered.begin());
  std::vector<Form> existing, others;
  for (int start = first; start >= 0; --start) {
    Dims dims;
    Ints map;
    for (int i = start; i < rank; ++i) {
      dims.push_back(covered[static_cast<size_t>(i)] ? type.dim(i) : Dim(1));
      map.push_back(i);
    }
    const Form candidate = unbroadcast(f, dims, map);
    if (candidate == kNoForm) continue;
    (exists(candidate) ? existing : others).push_back(candidate);
  }
  if (std::ranges::find(existing, f) == existing.end()) others.push_back(f);
  existing.insert(existing.end(), others.begin(), others.end());
  return existing;
}

double recovered(DType dtype, double number, double divisor) {
  const double rounded = round_to(dtype, number);
  for (int digits = 1; digits <= 17; ++digits) {
    const Result<double> decimal = parse_double(fmt::format("{:.{}g}", number * divisor, digits));
    if (decimal.ok() && round_to(dtype, *decimal / divisor) == rounded) return *decimal;
  }
  return number * divisor;
}

}  // namespace hone
