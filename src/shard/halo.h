#pragma once

#include <optional>
#include <vector>

#include "ir/op_def.h"
#include "shard/mesh_parts.h"

// Ops of which a result needs elements around its place: a device asks its neighbours for some.

namespace hone {

// How the results along a dim read a dim of operand 0: result i needs the elements from
// i * stride - low on, `extent` of them. Elements that the operand lacks hold a fixed number.
struct DimWindow {
  int result_dim = 0;
  int operand_dim = 0;
  int64_t stride = 1;
  int64_t extent = 1;
  int64_t low = 0;
  // Elements are read from the last one to the first: devices exchange their parts, the first with
  // the last. All else is said of the elements in that order.
  bool is_mirrored = false;
};

// Puts operand 1, a number, around the elements of operand 0: pad.
bool puts_around(Opcode opcode);
// The windows of convolutions, pools, slices and pads without holes in their operands, and of dims
// that are reversed. Static types only.
std::vector<DimWindow> dim_windows(const Application& application, Type result);

// Elements of the part of a device that goes to the one `hop` places further; 0: to itself.
struct HaloPiece {
  int64_t hop = 0;
  int64_t begin = 0;  // in the part
  int64_t end = 0;
};

// The elements that device number k along `axes` fetches, for results k * results and on.
struct Halo {
  DimWindow window;
  MeshParts axes;
  int64_t size = 0;     // of the whole dim of the operand
  int64_t part = 0;     // that a device has of it, the last ones with padding
  int64_t results = 0;  // that a device makes
  int64_t left = 0;     // that it fetches from those before it
  int64_t right = 0;    // and behind it

  // All that its results need.
  int64_t length() const { return (results - 1) * window.stride + window.extent; }
  // Where that begins, in what is fetched and its own: first + k * step.
  int64_t first() const { return left - window.low; }
  int64_t step() const { return results * window.stride - part; }
  // Elements that the operand does not have are needed, where devices have padding or others
  // would send.
  bool passes_low() const { return window.low > 0; }
  bool passes_high() const;
  // All that is fetched, and its own as far as it is read, in order. If all devices read at the
  // same distance from their parts, that is what their results need, and no more.
  std::vector<HaloPiece> pieces() const;
};
// Who sends and who receives, so that the first device has the part of the last one.
Ints mirrored_pairs(int64_t count);
// None: a device would need most of what all others have.
std::optional<Halo> halo_of(const DimWindow& window, const MeshParts& axes, int64_t size,
                            int64_t results);

// A value that stands somewhere in a longer one, whose parts are the devices': a concat has
// several. Device number k needs some of the parts of the value, `slots` of them one behind the
// other.
struct Stretch {
  MeshParts axes;
  int64_t offset = 0;   // of its first element in the longer one
  int64_t size = 0;     // its elements
  int64_t part = 0;     // that a device has of them, the last ones with padding
  int64_t results = 0;  // that a device has of the longer one

  int64_t slots() const { return (results + 2 * part - 2) / part; }
  // The part that device k needs first; devices before the first one or behind the last have none.
  int64_t first_of(int64_t k) const;
  // Who sends and who receives, of the devices along the axes, so that each gets its part `slot`.
  Ints pairs(int64_t slot) const;
};

// The op for operands that have all elements that are needed along these dims, and no more.
Op without_borders(Op op, int operand_rank, const std::vector<Halo>& halos);

}  // namespace hone
