#include <algorithm>

#include "ir/passes/raise/guess.h"

namespace hone {
namespace {

// The value that is gathered from by constant positions along one axis; kNoForm for other forms.
Form gathered(const Guess& g, Form f) {
  if (!g.is(f, Opcode::gather)) return kNoForm;
  const Form index = g.operand(f, 1);
  const bool constant = g.forms.is(index, FormKind::constant) || g.forms.is(index, FormKind::splat);
  return constant && g.forms.type(index).rank() == 1 ? g.operand(f, 0) : kNoForm;
}

// What one axis was resampled from: the source of some term of the weighted sum.
Form source_of(const Guess& g, Form f) {
  while (g.is(f, Opcode::add)) f = g.operand(f, 0);
  for (Form x : g.forms.factors(f).list)
    if (const Form source = gathered(g, x); source != kNoForm) return source;
  return kNoForm;
}

// Standard settings first: several may give the same samples.
std::vector<Attrs> settings(const Guess& g) {
  const Attrs base = {{"sizes", g.forms.dims(g.root)}};
  std::vector<Attrs> all;
  auto add = [&](Attrs extra) {
    extra.insert(extra.begin(), base.begin(), base.end());
    all.push_back(std::move(extra));
  };
  constexpr const char* kCoordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                          "pytorch_half_pixel"};
  if (g.is(g.root, Opcode::gather)) {
    for (const char* rounding : {"round_prefer_floor", "floor", "round_prefer_ceil", "ceil"})
      for (const char* coordinates : kCoordinates)
        add({{"coordinates", coordinates}, {"nearest", rounding}});
    return all;
  }
  for (bool antialias : {false, true}) {
    for (bool exclude : {false, true}) {
      for (const char* coordinates : kCoordinates) {
        add({{"mode", "linear"},
             {"coordinates", coordinates},
             {"exclude_outside", exclude},
             {"antialias", antialias}});
        for (double a : {-0.75, -0.5}) {
          add({{"mode", "cubic"},
               {"coordinates", coordinates},
               {"cubic_a", a},
               {"exclude_outside", exclude},
               {"antialias", antialias}});
        }
      }
    }
  }
  return all;
}

bool guess_resize(Guess& g) {
  Form x = source_of(g, g.root);
  if (x == kNoForm) return false;
  // All axes together before the last one alone.
  std::vector<Form> sources;
  for (; x != kNoForm; x = source_of(g, x))
    if (g.forms.type(x).rank() == g.forms.type(g.root).rank()) sources.push_back(x);
  std::ranges::reverse(sources);
  for (Form source : sources)
    for (const Attrs& attrs : settings(g))
      if (g.propose(Op::get(Opcode::resize, attrs), {source})) return true;
  return false;
}

constexpr RaiseRule kRules[] = {
    {Opcode::gather, guess_resize},
    {Opcode::add, guess_resize},
    {Opcode::mul, guess_resize},
};

}  // namespace

std::span<const RaiseRule> resize_rules() { return kRules; }

}  // namespace hone
