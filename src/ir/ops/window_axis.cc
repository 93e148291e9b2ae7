#include "ir/ops/window_axis.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "ir/ops/checks.h"

namespace hone {

namespace {

Status check_count(const Ints& list, std::string_view name, int dims, std::string_view dims_name) {
  if (list.empty() || list.size() == static_cast<size_t>(dims)) return {};
  return bad_input("{} has {} entries for {} {}", name, list.size(), dims, dims_name);
}

Status check_positive(const Ints& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] < 1) return bad_input("{}[{}] is {}, not at least 1", name, i, list[i]);
  return {};
}

}  // namespace

Result<std::vector<WindowParams>> window_params(Op op, std::string_view window_dilation, int dims,
                                                std::string_view dims_name) {
  for (std::string_view name :
       {std::string_view("stride"), std::string_view("input_dilation"), window_dilation}) {
    HONE_TRY(check_count(op.ints(name), name, dims, dims_name));
    HONE_TRY(check_positive(op.ints(name), name));
  }
  for (std::string_view name : {"pad_low", "pad_high"})
    HONE_TRY(check_count(op.ints(name), name, dims, dims_name));
  std::vector<WindowParams> params;
  for (int i = 0; i < dims; ++i) {
    params.push_back({.stride = entry_or(op.ints("stride"), i, 1),
                      .pad_low = entry_or(op.ints("pad_low"), i, 0),
                      .pad_high = entry_or(op.ints("pad_high"), i, 0),
                      .in_dilation = entry_or(op.ints("input_dilation"), i, 1),
                      .window_dilation = entry_or(op.ints(window_dilation), i, 1)});
  }
  return params;
}

Result<Dim> window_count(Dim in, Dim window, const WindowParams& params, std::string_view what) {
  if (!provably_le(1, window)) {
    demand(Demand::Kind::at_least, window, 1);
    return bad_input("the window of {} is {}, not {}at least 1", what, window.to_string(),
                     window.is_static() ? "" : "provably ");
  }
  Dim dilated = in;
  if (params.in_dilation != 1 && !in.is(0)) {
    if (!provably_le(1, in)) {
      demand(Demand::Kind::at_least, in, 1);
      return bad_input("{} is {}, which may be 0; a dilated input must not be empty", what,
                       in.to_string());
    }
    dilated = (in - 1) * params.in_dilation + 1;
  }
  Dim padded = dilated + params.pad_low + params.pad_high;
  Dim span = (window - 1) * params.window_dilation + 1;
  Dim count = floordiv(padded - span, params.stride) + 1;
  if (provably_le(0, count)) return count;
  demand(Demand::Kind::at_least, count, 0);
  bool known = padded.is_static() && span.is_static();
  return bad_input("the window of {} spans {}, but the padded input {}has {}", what,
                   span.to_string(), known ? "" : "may have less: it ", padded.to_string());
}

IndexExpr window_index(IndexExpr out, IndexExpr window, Dim in, const WindowParams& params,
                       std::vector<Guard>& guards) {
  IndexExpr position = out * params.stride + window * params.window_dilation - params.pad_low;
  if (params.in_dilation != 1) guards.push_back({mod(position, params.in_dilation), 0, 1});
  bool padded = params.pad_low > 0 || params.pad_high > 0;
  if (padded || params.in_dilation != 1)
    guards.push_back({position, 0, (in - 1) * params.in_dilation + 1});
  return floordiv(position, params.in_dilation);
}

std::optional<int64_t> WindowAxis::element(int64_t o, int64_t w) const {
  int64_t position = o * params.stride + w * params.window_dilation - params.pad_low;
  if (position < 0 || position % params.in_dilation != 0) return std::nullopt;
  int64_t index = position / params.in_dilation;
  if (index >= in) return std::nullopt;
  return index;
}

WindowAxis::Run WindowAxis::elements(int64_t begin, int64_t end, int64_t w) const {
  // Window o is at o * stride + origin; its elements are at multiples of the dilation.
  const int64_t stride = params.stride;
  const int64_t origin = w * params.window_dilation - params.pad_low;
  const int64_t last = (in - 1) * params.in_dilation;
  if (in == 0 || last < origin) return {};
  begin = std::max(begin, ceil_div(-origin, stride));
  end = std::min(end, floor_div(last - origin, stride) + 1);
  const int64_t step = params.in_dilation / std::gcd(params.in_dilation, stride);
  const int64_t first_end = std::min(end, begin + step);
  while (begin < first_end && (begin * stride + origin) % params.in_dilation != 0) ++begin;
  if (begin >= first_end) return {};
  return {.count = ceil_div(end - begin, step),
          .first_out = begin,
          .out_step = step,
          .first_in = (begin * stride + origin) / params.in_dilation,
          .in_step = step * stride / params.in_dilation};
}

}  // namespace hone
