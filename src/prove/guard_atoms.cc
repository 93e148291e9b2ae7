#include "prove/guard_atoms.h"

#include <algorithm>
#include <bit>

namespace hone {
namespace {

constexpr size_t kMaxAtoms = 160;

// A sum of symbols with small factors, and more than one symbol or another number.
bool is_linear(Dim dim) {
  if (dim.is_static()) return false;
  Dim rest = dim;
  for (Symbol s : dim.symbols())
    for (int64_t factor : {1, 2, 3, 4, -1}) {
      const std::vector<Symbol> left = (rest - Dim(s) * factor).symbols();
      if (std::ranges::find(left, s) != left.end()) continue;
      rest = rest - Dim(s) * factor;
      break;
    }
  return rest.is_static();
}

void add_dims(const Graph& graph, std::vector<Dim>& dims) {
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    for (Dim dim : graph.type(ValueId{v}).dims())
      if (is_linear(dim) && std::ranges::find(dims, dim) == dims.end()) dims.push_back(dim);
}

}  // namespace

std::vector<Condition> guard_atoms(const Rule& rule) {
  const std::vector<Symbol> symbols = rule.symbols();
  std::vector<Condition> atoms;
  const auto add = [&](Dim left, Relation relation, Dim right) {
    if (!(left == right) && atoms.size() < kMaxAtoms) atoms.push_back({left, relation, right});
  };
  for (Symbol s : symbols) add(s, Relation::equal, 1);
  for (size_t i = 0; i < symbols.size(); ++i)
    for (size_t j = i + 1; j < symbols.size(); ++j) add(symbols[i], Relation::equal, symbols[j]);
  for (Symbol s : symbols) {
    add(s, Relation::equal, floordiv(s, 2) * 2);
    add(s, Relation::equal, floordiv(s, 2) * 2 + 1);
    add(s, Relation::equal, floordiv(s, 3) * 3);
    for (int64_t number : {2, 3}) {
      add(s, Relation::at_most, number);
      add(number, Relation::at_most, s);
    }
    for (int64_t number : {0, 2, 3}) add(s, Relation::equal, number);
  }
  for (Symbol s : symbols)
    for (Symbol t : symbols) {
      if (s == t) continue;
      add(s, Relation::at_most, t);
      add(s, Relation::less, t);
      add(s, Relation::equal, Dim(t) * 2);
      add(s, Relation::equal, Dim(t) + 1);
    }
  // Sizes that differ in general.
  std::vector<Dim> dims;
  add_dims(rule.left, dims);
  add_dims(rule.right, dims);
  for (size_t i = 0; i < dims.size(); ++i)
    for (size_t j = i + 1; j < dims.size(); ++j) {
      if (dims[i].symbols().size() < 2 && dims[j].symbols().size() < 2) continue;
      add(dims[i], Relation::equal, dims[j]);
    }
  return atoms;
}

AtomTable::AtomTable(std::vector<Condition> atoms, const std::vector<Bindings>& good,
                     const std::vector<Bindings>& bad)
    : atoms_(std::move(atoms)) {
  const auto row = [](const Condition& atom, const std::vector<Bindings>& all) {
    Row bits((all.size() + 63) / 64);
    for (size_t i = 0; i < all.size(); ++i)
      if (atom.holds(all[i])) bits[i / 64] |= uint64_t{1} << (i % 64);
    return bits;
  };
  for (const Condition& atom : atoms_) {
    good_.push_back(row(atom, good));
    bad_.push_back(row(atom, bad));
  }
}

std::vector<Condition> AtomTable::weakest() const {
  std::vector<size_t> best, chosen;
  size_t most = 0;
  // Adds atoms behind those that are chosen, as long as that can be better than the best.
  const auto extend = [&](const auto& self, size_t from, size_t more, const Row& good,
                          const Row& bad) -> void {
    for (size_t a = from; a < atoms_.size(); ++a) {
      Row both = good_[a], wrong = bad_[a];
      size_t count = 0;
      bool is_wrong = false;
      for (size_t i = 0; i < both.size(); ++i) {
        both[i] &= good[i];
        count += static_cast<size_t>(std::popcount(both[i]));
      }
      for (size_t i = 0; i < wrong.size(); ++i) {
        wrong[i] &= bad[i];
        is_wrong = is_wrong || wrong[i] != 0;
      }
      if (count <= most) continue;
      chosen.push_back(a);
      if (!is_wrong)
        best = chosen, most = count;
      else if (more > 0)
        self(self, a + 1, more - 1, both, wrong);
      chosen.pop_back();
    }
  };
  const size_t words_good = good_.empty() ? 0 : good_[0].size();
  const size_t words_bad = bad_.empty() ? 0 : bad_[0].size();
  // With few conditions first: what more of them admit must be more.
  for (size_t more = 0; more < 3; ++more)
    extend(extend, 0, more, Row(words_good, ~uint64_t{0}), Row(words_bad, ~uint64_t{0}));
  std::vector<Condition> found;
  for (size_t a : best) found.push_back(atoms_[a]);
  return found;
}

}  // namespace hone
