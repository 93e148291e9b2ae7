#include <algorithm>
#include <numeric>

#include "ir/composites/expansion.h"
#include "rewrite/raise/guess.h"

namespace hone {
namespace {

Attrs single(std::string_view name, Dim d) { return {{name, Dims{d}}}; }

// ---- Reductions ---------------------------------------------------------------------------------

bool guess_global_pool(Guess& g) {
  if (g.forms.type(g.root).rank() < 3) return false;
  for (Form f : g.forms.factors(g.root).list) {
    const Form reduced = g.core(f);
    if (!g.is(reduced, Opcode::reduce)) continue;
    const std::string kind = g.forms.op(reduced).word("kind") == "max" ? "max" : "average";
    if (g.propose(Op::get(Opcode::global_pool, {{"kind", kind}}), {g.operand(reduced, 0)}))
      return true;
  }
  return false;
}

bool guess_cumsum(Guess& g) {
  const Op op = g.forms.op(g.root);
  return op.word("kind") == "sum" &&
         g.propose(Op::get(Opcode::cumsum, {{"axis", op.integer("axis")},
                                            {"exclusive", op.flag("exclusive")},
                                            {"reverse", op.flag("reverse")}}),
                   {g.operand(g.root, 0)});
}

// ---- Indices ------------------------------------------------------------------------------------

// The first k of the elements sorted together with their indices.
bool guess_top_k(Guess& g) {
  const bool cut = g.is(g.root, Opcode::slice);
  const Form sorted = cut ? g.operand(g.root, 0) : g.root;
  if (!g.is(sorted, Opcode::sort)) return false;
  const Op sort = g.forms.op(sorted);
  const int64_t axis = sort.integer("axis");
  const Type type = g.forms.type(g.root);
  Attrs attrs = single("k", type.dim(static_cast<int>(axis)));
  attrs.push_back({"axis", from_back(axis, type.rank())});
  attrs.push_back({"largest", sort.flag("descending")});
  return g.propose(Op::get(Opcode::top_k, attrs), {g.operand(sorted, 0)});
}

// index == j or index == -(depth - j)
bool guess_one_hot(Guess& g) {
  const bool chosen = g.is(g.root, Opcode::select);
  const Form hit = g.operand(g.root, 0);
  if (!g.is(hit, Opcode::or_)) return false;
  const Form test = g.operand(hit, 0);
  if (!g.is(test, Opcode::compare)) return false;
  for (size_t i = 0; i < 2; ++i) {
    Form position = g.operand(test, i), index = g.operand(test, 1 - i);
    while (g.is(position, Opcode::not_) || g.is(position, Opcode::reverse))
      position = g.operand(position, 0);
    if (!g.is(position, Opcode::iota)) continue;
    const int axis = static_cast<int>(g.forms.op(position).integer("axis"));
    const Type type = g.forms.type(g.root);
    Dims dims = g.forms.dims(g.root);
    Ints map = int_range(0, type.rank());
    dims.erase(dims.begin() + axis);
    map.erase(map.begin() + axis);
    index = g.unbroadcast(index, dims, map);
    if (index == kNoForm) continue;
    Attrs attrs = single("depth", type.dim(axis));
    attrs.push_back({"axis", from_back(axis, type.rank())});
    Form values = kNoForm;
    if (chosen) {
      const Form off = g.core(g.operand(g.root, 2));
      if (!g.is(off, Opcode::slice)) return false;
      values = g.operand(off, 0);
    } else {
      attrs.push_back({"dtype", type.dtype()});
    }
    // The conversions to i64 belong to the op.
    std::vector<Form> candidates;
    const Form core = g.core(index);
    if (g.is(core, Opcode::cast)) {
      Form narrow = g.operand(core, 0);
      candidates.push_back(g.forms.reshape(narrow, dims));
      if (g.is(narrow, Opcode::min)) {
        if (const auto bounded = g.beside_splat(narrow))
          candidates.push_back(g.forms.reshape(bounded->first, dims));
      }
    }
    candidates.push_back(index);
    for (Form candidate : candidates)
      if (g.propose(Op::get(Opcode::one_hot, attrs), {candidate, values})) return true;
  }
  return false;
}

// ---- Blocks -------------------------------------------------------------------------------------

// A reshape of a transpose of a reshape, all of images.
bool guess_blocks(Guess& g) {
  Form turned = g.root;
  while (g.is(turned, Opcode::reshape)) turned = g.operand(turned, 0);
  const Dims dims = g.forms.dims(g.root);
  if (dims.size() != 4 || !g.is(turned, Opcode::transpose)) return false;
  const Form split = g.operand(turned, 0);
  if (!g.is(split, Opcode::reshape)) return false;
  std::vector<int64_t> blocks;
  for (Dim d : g.forms.dims(split))
    if (d.is_static() && d.value() > 1 && std::ranges::find(blocks, d.value()) == blocks.end())
      blocks.push_back(d.value());
  for (int64_t block : blocks) {
    const auto h = dims[2].divided_by(block), w = dims[3].divided_by(block);
    if (h && w) {
      const Form x = g.forms.reshape(split, {dims[0], dims[1] * block * block, *h, *w});
      for (const char* mode : {"dcr", "crd"}) {
        const Op op = Op::get(Opcode::depth_to_space, {{"block", block}, {"mode", mode}});
        if (g.propose(op, {x})) return true;
      }
    }
    if (const auto c = dims[1].divided_by(block * block)) {
      const Form x = g.forms.reshape(split, {dims[0], *c, dims[2] * block, dims[3] * block});
      if (g.propose(Op::get(Opcode::space_to_depth, {{"block", block}}), {x})) return true;
    }
  }
  return false;
}

constexpr RaiseRule kTensorRules[] = {
    {Opcode::mul, guess_global_pool},   {Opcode::reshape, guess_global_pool},
    {Opcode::cumulative, guess_cumsum}, {Opcode::slice, guess_top_k},
    {Opcode::sort, guess_top_k},        {Opcode::cast, guess_one_hot},
    {Opcode::select, guess_one_hot},    {Opcode::reshape, guess_blocks},
};

}  // namespace

std::span<const RaiseRule> tensor_rules() { return kTensorRules; }

}  // namespace hone
