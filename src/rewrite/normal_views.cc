#include <algorithm>
#include <numeric>

#include "rewrite/normal_form.h"

// Views and contractions in normal form. See normal_form.h for the rules.

namespace hone {
namespace {

Dims without_ones(std::span<const Dim> dims) {
  Dims kept;
  for (Dim d : dims)
    if (!d.is(1)) kept.push_back(d);
  return kept;
}

// For each dim, its place among the dims that are not 1; -1 for ones.
Ints places(std::span<const Dim> dims) {
  Ints place;
  int64_t next = 0;
  for (Dim d : dims) place.push_back(d.is(1) ? -1 : next++);
  return place;
}

bool is_identity(const Ints& permutation) { return std::ranges::is_sorted(permutation); }

Op reshape_op(const Dims& dims) { return Op::get(Opcode::reshape, {{"dims", dims}}); }

}  // namespace

// ---- Views --------------------------------------------------------------------------------------

// The number of a product moves out of the view, and the view goes to each factor.
Form NormalForms::view_of_product(Form x, Type type, const std::function<Form(Form)>& view) {
  Factors f = factors(x);
  for (Form& factor : f.list) factor = view(factor);
  return product(type, std::move(f));
}

// Without dims of 1.
Form NormalForms::squeezed(Form x) { return reshape(x, without_ones(type(x).dims())); }

Form NormalForms::reshape(Form x, const Dims& dims) {
  const Type from = type(x), to = from.with_dims(dims);
  if (from == to) return x;
  if (is(x, FormKind::splat)) {
    FormNode node = nodes_[x];
    node.type = to;
    return intern(node, {});
  }
  if (is(x, FormKind::product))
    return view_of_product(x, to, [&](Form f) { return reshape(f, dims); });
  const Dims wanted = without_ones(dims);
  Form core = x;
  while (is(core, Opcode::reshape)) core = operand(core, 0);
  if (type(core) == to) return core;
  if (is(core, Opcode::broadcast)) {
    // A broadcast only moves its dims of 1; a true change of shape works on it without any.
    if (wanted == without_ones(type(core).dims())) {
      const Ints place = places(type(core).dims());
      Ints new_dim;  // per place
      for (size_t i = 0; i < dims.size(); ++i)
        if (!dims[i].is(1)) new_dim.push_back(static_cast<int64_t>(i));
      Ints map;
      for (int64_t m : op(core).ints("map"))
        map.push_back(new_dim[static_cast<size_t>(place[static_cast<size_t>(m)])]);
      return broadcast(operand(core, 0), dims, map);
    }
    core = squeezed(core);
  }
  // First the dims that are not 1, then the others.
  if (type(core) != from.with_dims(wanted))
    core = make(reshape_op(wanted), std::span(&core, 1), from.with_dims(wanted));
  if (wanted == dims) return core;
  return make(reshape_op(dims), std::span(&core, 1), to);
}

Form NormalForms::broadcast(Form x, const Dims& dims, const Ints& map) {
  const Type from = type(x), to = from.with_dims(dims);
  if (is(x, FormKind::splat)) {
    FormNode node = nodes_[x];
    node.type = to;
    return intern(node, {});
  }
  if (is(x, FormKind::product))
    return view_of_product(x, to, [&](Form f) { return broadcast(f, dims, map); });
  Ints kept;
  for (size_t i = 0; i < map.size(); ++i)
    if (!from.dims()[i].is(1)) kept.push_back(map[i]);
  Form core = squeezed(x);
  if (is(core, Opcode::broadcast)) {
    Ints composed;
    for (int64_t m : op(core).ints("map")) composed.push_back(kept[static_cast<size_t>(m)]);
    kept = composed;
    core = operand(core, 0);
  }
  // Nothing is repeated: a reshape.
  if (kept.size() == without_ones(dims).size()) return reshape(core, dims);
  return make(Op::get(Opcode::broadcast, {{"dims", dims}, {"map", kept}}), std::span(&core, 1), to);
}

Form NormalForms::transpose(Form x, const Ints& permutation) {
  const Type from = type(x);
  Dims dims;
  for (int64_t p : permutation) dims.push_back(from.dim(static_cast<int>(p)));
  const Type to = from.with_dims(dims);
  if (is(x, FormKind::splat)) {
    FormNode node = nodes_[x];
    node.type = to;
    return intern(node, {});
  }
  if (is(x, FormKind::product))
    return view_of_product(x, to, [&](Form f) { return transpose(f, permutation); });

  // On the core without ones.
  const Ints place = places(from.dims());
  Ints inner;
  for (int64_t p : permutation)
    if (place[static_cast<size_t>(p)] >= 0) inner.push_back(place[static_cast<size_t>(p)]);
  Form core = squeezed(x);
  if (is_identity(inner)) return reshape(core, dims);
  if (is(core, Opcode::broadcast)) {
    // The core's dims follow their places in the result.
    const Ints map = op(core).ints("map");
    Ints order, placed;
    for (size_t i = 0; i < inner.size(); ++i) {
      auto at = std::ranges::find(map, inner[i]);
      if (at == map.end()) continue;
      order.push_back(at - map.begin());
      placed.push_back(static_cast<int64_t>(i));
    }
    const Dims squeezed_dims = without_ones(dims);
    return reshape(broadcast(transpose(operand(core, 0), order), squeezed_dims, placed), dims);
  }
  if (is(core, Opcode::einsum)) return reshape(permuted_contraction(core, inner), dims);
  if (is(core, Opcode::transpose)) {
    const Ints first = op(core).ints("permutation");
    for (int64_t& p : inner) p = first[static_cast<size_t>(p)];
    core = operand(core, 0);
    if (is_identity(inner)) return reshape(core, dims);
  }
  const Form turned = make(Op::get(Opcode::transpose, {{"permutation", inner}}),
                           std::span(&core, 1), from.with_dims(without_ones(dims)));
  return reshape(turned, dims);
}

// ---- Contractions -------------------------------------------------------------------------------

// Renames the letters in the order of their appearance.
static void rename(std::string& lhs, std::string& rhs, std::string& result) {
  std::string names(128, '\0');
  char next = 'a';
  for (std::string* text : {&lhs, &rhs, &result}) {
    for (char& c : *text) {
      char& name = names[static_cast<size_t>(c)];
      if (name == '\0') {
        name = next;
        next = next == 'z' ? 'A' : static_cast<char>(next + 1);
      }
      c = name;
    }
  }
}

Form NormalForms::einsum(std::string lhs, std::string rhs, std::string result, Form a, Form b,
                         Type type) {
  // Transposes of the operands go into the letters.
  auto peeled = [&](Form& x, std::string& letters) {
    if (!is(x, Opcode::transpose)) return;
    const Ints permutation = op(x).ints("permutation");
    std::string inner(letters.size(), ' ');
    for (size_t i = 0; i < letters.size(); ++i)
      inner[static_cast<size_t>(permutation[i])] = letters[i];
    letters = inner;
    x = operand(x, 0);
  };
  peeled(a, lhs);
  peeled(b, rhs);
  std::string equation;
  auto spelled = [&](std::string l, std::string r, std::string out) {
    rename(l, r, out);
    return l + "," + r + "->" + out;
  };
  if (a > b) {
    std::swap(a, b);
    std::swap(lhs, rhs);
  }
  equation = spelled(lhs, rhs, result);
  if (a == b) equation = std::min(equation, spelled(rhs, lhs, result));
  const Form both[] = {a, b};
  return make(Op::get(Opcode::einsum, {{"equation", equation}}), both, type);
}

Form NormalForms::contraction(Op dot, Form lhs, Form rhs, Type type) {
  const Ints &lhs_batch = dot.ints("lhs_batch"), &rhs_batch = dot.ints("rhs_batch");
  const Ints &lhs_contract = dot.ints("lhs_contract"), &rhs_contract = dot.ints("rhs_contract");
  const size_t lhs_rank = static_cast<size_t>(this->type(lhs).rank());
  const size_t rhs_rank = static_cast<size_t>(this->type(rhs).rank());
  if (lhs_rank + rhs_rank > 52) {
    const Form both[] = {lhs, rhs};
    return make(dot, both, type);
  }
  // A letter per batch dim, contracted dim, and free dim.
  std::string a(lhs_rank, ' '), b(rhs_rank, ' '), result;
  char next = 'a';
  auto fresh = [&] {
    const char c = next;
    next = next == 'z' ? 'A' : static_cast<char>(next + 1);
    return c;
  };
  for (size_t i = 0; i < lhs_batch.size(); ++i) {
    const char c = fresh();
    a[static_cast<size_t>(lhs_batch[i])] = b[static_cast<size_t>(rhs_batch[i])] = c;
    result += c;
  }
  for (size_t i = 0; i < lhs_contract.size(); ++i)
    a[static_cast<size_t>(lhs_contract[i])] = b[static_cast<size_t>(rhs_contract[i])] = fresh();
  for (std::string* letters : {&a, &b}) {
    for (char& c : *letters) {
      if (c != ' ') continue;
      c = fresh();
      result += c;
    }
  }
  // Dims of 1 take no part.
  auto squeeze = [](std::string& letters, std::span<const Dim> dims) {
    std::string kept;
    for (size_t i = 0; i < letters.size(); ++i)
      if (!dims[i].is(1)) kept += letters[i];
    letters = kept;
  };
  squeeze(a, this->type(lhs).dims());
  squeeze(b, this->type(rhs).dims());
  squeeze(result, type.dims());
  double number = 1;
  auto plain = [&](Form& x) {
    x = squeezed(x);
    if (!is_real(type.dtype()) || !is(x, FormKind::product)) return;
    Factors f = factors(x);
    number *= f.number;
    x = product(this->type(x), {1, std::move(f.list)});
  };
  plain(lhs);
  plain(rhs);
  Form y = einsum(a, b, result, lhs, rhs, type.with_dims(without_ones(type.dims())));
  y = reshape(y, Dims(type.dims().begin(), type.dims().end()));
  return number == 1 ? y : scaled(y, number);
}

Form NormalForms::permuted_contraction(Form x, const Ints& permutation) {
  const std::string equation = op(x).word("equation");
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string old = equation.substr(arrow + 2);
  std::string result;
  Dims dims;
  for (int64_t p : permutation) {
    result += old[static_cast<size_t>(p)];
    dims.push_back(type(x).dim(static_cast<int>(p)));
  }
  return einsum(equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1), result,
                operand(x, 0), operand(x, 1), type(x).with_dims(dims));
}

}  // namespace hone
