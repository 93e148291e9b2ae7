#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/index_expr.h"
#include "tensor/type.h"

namespace hone {

// How the elements of a tensor lie in memory: its dims in some order, then blocks that are cut off
// some of them, as dims of their own. Row-major over the dims that this gives.
//
//   [0, 1, 2, 3]             of f32[N, C, H, W]: as it is
//   [0, 2, 3, 1]             channels last: N, H, W, C
//   [0, 1/16, 2, 3, 1%16]    channels in blocks: N, C/16, H, W, 16
struct Layout {
  struct Part {
    int dim = 0;
    int64_t block = 1;  // above 1: dim/block, or dim%block if is_inner
    bool is_inner = false;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;

  static Layout row_major(int rank);
  bool is_row_major() const;
  bool operator==(const Layout&) const = default;
};

// Each dim stands once, or as dim/block and dim%block with a block that divides its size.
Status check(const Layout& layout, Type logical);
// The type of the memory. The layout fits.
Type stored_type(const Layout& layout, Type logical);
// Where the element at a logical index lies.
std::vector<IndexExpr> stored_index(const Layout& layout, std::span<const IndexExpr> logical);

std::string print(const Layout& layout);  // "[0, 1/16, 2, 3, 1%16]"
// Inverse of print; blanks are free.
Result<Layout> parse_layout(std::string_view text);

}  // namespace hone
