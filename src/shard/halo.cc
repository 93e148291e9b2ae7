#include "shard/halo.h"

#include <algorithm>
#include <cstdlib>

#include "base/checked_math.h"
#include "ir/op_facts.h"
#include "ir/ops/conv_order.h"
#include "ir/ops/window_axis.h"
#include "shard/local_op.h"

namespace hone {
namespace {

size_t at_place(int i) { return static_cast<size_t>(i); }

int64_t entry(const Ints& list, int i, int64_t other) {
  return list.empty() ? other : list[at_place(i)];
}

// A window without holes in what it covers.
void add_window(std::vector<DimWindow>& found, int result_dim, int operand_dim, int64_t window,
                const WindowParams& params) {
  if (params.in_dilation != 1 || window < 1) return;
  found.push_back({.result_dim = result_dim,
                   .operand_dim = operand_dim,
                   .stride = params.stride,
                   .extent = (window - 1) * params.window_dilation + 1,
                   .low = params.pad_low});
}

bool reverses_dims(Op op) {
  return class_of(op.opcode()) == OpClass::movement && has_attr(op, "axes");
}

std::vector<DimWindow> all_windows(const Application& app) {
  const Op op = app.op;
  const Type x = app.operand(0);
  std::vector<DimWindow> found;
  if (is_convolution(op.opcode())) {
    const int spatial = x.rank() - 2;
    const ConvOrder order = *parse_conv_order(op.word("order"), spatial);
    const std::vector<WindowParams> params =
        *window_params(op, "kernel_dilation", spatial, "spatial dims");
    for (int i = 0; i < spatial; ++i)
      add_window(found, order.output_spatial[at_place(i)], order.input_spatial[at_place(i)],
                 app.operand(1).dim(order.kernel_spatial[at_place(i)]).value(),
                 params[at_place(i)]);
  } else if (combines_windows(op.opcode())) {
    const std::vector<WindowParams> params =
        *window_params(op, "window_dilation", x.rank(), "dims");
    for (int i = 0; i < x.rank(); ++i)
      add_window(found, i, i, op.ints("window")[at_place(i)], params[at_place(i)]);
  } else if (takes_part(op.opcode())) {
    for (int i = 0; i < x.rank(); ++i)
      found.push_back({.result_dim = i,
                       .operand_dim = i,
                       .stride = entry(op.ints("stride"), i, 1),
                       .low = -op.dims("start")[at_place(i)].value()});
  } else if (puts_around(op.opcode())) {
    for (int i = 0; i < x.rank(); ++i)
      if (entry(op.ints("interior"), i, 0) == 0)
        found.push_back(
            {.result_dim = i, .operand_dim = i, .low = op.dims("low")[at_place(i)].value()});
  } else if (reverses_dims(op)) {
    for (const int64_t axis : op.ints("axes")) {
      const int i = static_cast<int>(axis);
      found.push_back({.result_dim = i, .operand_dim = i, .is_mirrored = true});
    }
  }
  return found;
}

}  // namespace

bool puts_around(Opcode opcode) {
  const OpTraits& traits = op_def(opcode).traits;
  return traits.is_local && traits.is_piecewise && !traits.may_be_view;
}

std::vector<DimWindow> dim_windows(const Application& application, Type result) {
  if (application.count() == 0) return {};
  std::vector<DimWindow> found = all_windows(application);
  std::erase_if(found, [&](const DimWindow& one) {
    const bool is_alike = application.operand(0).dim(one.operand_dim) == result.dim(one.result_dim);
    return is_alike && one.stride == 1 && one.extent == 1 && one.low == 0 && !one.is_mirrored;
  });
  return found;
}

bool Halo::passes_high() const {
  return (count_of(axes) * results - 1) * window.stride - window.low + window.extent > size;
}

std::vector<HaloPiece> Halo::pieces() const {
  const int64_t from = step() == 0 ? -window.low : -left;
  const int64_t to = step() == 0 ? from + length() : part + right;
  const auto part_of = [&](int64_t place) {
    return place >= 0 ? place / part : -ceil_div(-place, part);
  };
  std::vector<HaloPiece> found;
  for (int64_t k = part_of(from); k <= part_of(to - 1); ++k)
    found.push_back({.hop = -k,
                     .begin = std::max(int64_t{0}, from - k * part),
                     .end = std::min(part, to - k * part)});
  return found;
}

Ints mirrored_pairs(int64_t count) {
  Ints pairs;
  for (int64_t k = 0; k < count; ++k) pairs.insert(pairs.end(), {count - 1 - k, k});
  return pairs;
}

std::optional<Halo> halo_of(const DimWindow& window, const MeshParts& axes, int64_t size,
                            int64_t results) {
  const int64_t count = count_of(axes);
  Halo halo = {.window = window,
               .axes = axes,
               .size = size,
               .part = ceil_div(size, count),
               .results = ceil_div(results, count)};
  if (size < 1 || results < 1) return std::nullopt;
  // The padding of the last device comes first.
  if (window.is_mirrored) {
    halo.size = count * halo.part;
    halo.window.low = size - halo.size;
  }
  // The needs of device k are linear in k: the first or the last device needs most.
  const auto left_of = [&](int64_t k) { return -(k * halo.step() - halo.window.low); };
  const auto right_of = [&](int64_t k) { return halo.length() - left_of(k) - halo.part; };
  halo.left = std::max({int64_t{0}, left_of(0), left_of(count - 1)});
  halo.right = std::max({int64_t{0}, right_of(0), right_of(count - 1)});
  int64_t elements = 0;
  for (const HaloPiece& one : halo.pieces()) {
    if (std::abs(one.hop) >= count) return std::nullopt;
    elements += one.end - one.begin;
  }
  if (elements >= count * halo.part) return std::nullopt;
  return halo;
}

int64_t Stretch::first_of(int64_t k) const {
  const int64_t begin = k * results - offset;
  return begin >= 0 ? begin / part : -ceil_div(-begin, part);
}

Ints Stretch::pairs(int64_t slot) const {
  Ints found;
  for (int64_t k = 0; k < count_of(axes); ++k) {
    const int64_t from = first_of(k) + slot;
    const bool is_read = k * results < offset + size && (k + 1) * results > offset;
    if (is_read && from >= 0 && from < count_of(axes)) found.insert(found.end(), {from, k});
  }
  return found;
}

Op without_borders(Op op, int operand_rank, const std::vector<Halo>& halos) {
  if (halos.empty()) return op;
  std::optional<ConvOrder> order;
  if (is_convolution(op.opcode())) order = *parse_conv_order(op.word("order"), operand_rank - 2);
  Attrs attrs;
  for (size_t a = 0; a < op.def().attrs.size(); ++a) {
    const std::string_view name = op.def().attrs[a].name;
    AttrValue value = op.attrs()[a];
    for (const Halo& halo : halos) {
      size_t i = at_place(halo.window.operand_dim);
      if (order)
        i = static_cast<size_t>(std::ranges::find(order->input_spatial, halo.window.operand_dim) -
                                order->input_spatial.begin());
      if (Ints* list = std::get_if<Ints>(&value); list != nullptr && !list->empty()) {
        if (name == "pad_low" || name == "pad_high") (*list)[i] = 0;
        if (halo.window.is_mirrored) std::erase(*list, halo.window.operand_dim);
      }
      if (Dims* list = std::get_if<Dims>(&value)) {
        if (name == "start" || name == "low" || name == "high") (*list)[i] = 0;
        if (name == "limit") (*list)[i] = halo.length();
      }
    }
    attrs.emplace_back(name, std::move(value));
  }
  return Op::get(op.opcode(), std::move(attrs));
}

}  // namespace hone
