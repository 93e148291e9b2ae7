#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/access.h"
#include "ir/op_def.h"

// Windows that slide over a dim, for conv and window_reduce.
//
// With holes of in_dilation - 1 between its elements and pad_low, pad_high more around them (less
// if negative), the dim is covered by windows of `window` positions that are window_dilation apart.
// Windows start every `stride`. Padding and holes are not elements: a window skips them.

namespace hone {

struct WindowParams {
  int64_t stride = 1;
  int64_t pad_low = 0;
  int64_t pad_high = 0;
  int64_t in_dilation = 1;
  int64_t window_dilation = 1;
};

// The attributes stride, pad_low, pad_high, input_dilation and `window_dilation`, one entry per
// dim; `dims_name` says whose dims in errors: "spatial dims".
Result<std::vector<WindowParams>> window_params(Op op, std::string_view window_dilation, int dims,
                                                std::string_view dims_name);

// How many windows there are. `what` names the dim in errors: "spatial dim 0".
Result<Dim> window_count(Dim in, Dim window, const WindowParams& params, std::string_view what);

// The index that window number `out` reads at its position `window`; adds the guards that say
// where it is an element.
IndexExpr window_index(IndexExpr out, IndexExpr window, Dim in, const WindowParams& params,
                       std::vector<Guard>& guards);

// A dim of known size.
struct WindowAxis {
  int64_t in = 1;
  int64_t window = 1;
  int64_t out = 1;
  WindowParams params = {};

  // The element that window `o` has at position `w`; none if that is padding or a hole.
  std::optional<int64_t> element(int64_t o, int64_t w) const;

  // Windows first_out, first_out + out_step, ... have elements first_in, first_in + in_step, ...
  struct Run {
    int64_t count = 0;
    int64_t first_out = 0;
    int64_t out_step = 1;
    int64_t first_in = 0;
    int64_t in_step = 1;
  };
  // The windows in [begin, end) that have an element at position `w`.
  Run elements(int64_t begin, int64_t end, int64_t w) const;
};

}  // namespace hone
