#include "program/build/key_order.h"

#include <string>

namespace hone {

tile::Scalar compared(TileBuilder& tiles, std::string_view direction, tile::Scalar a,
                      tile::Scalar b) {
  return tiles.compute(Opcode::compare, {a, b}, {{"direction", std::string(direction)}});
}

// The lower of two reals comes before the upper one if it is a number, and the upper one is not at
// most it.
tile::Scalar KeyOrder::comes_before(Scalar a, Scalar b) {
  const Scalar low = descends_ ? b : a, high = descends_ ? a : b;
  if (!is_real(tiles_.dtype(a))) return compared(tiles_, "lt", low, high);
  const Scalar is_higher = tiles_.compute(Opcode::not_, {compared(tiles_, "le", high, low)});
  const Scalar is_number = tiles_.compute(Opcode::not_, {tiles_.compute(Opcode::is_nan, {low})});
  return tiles_.compute(Opcode::and_, {is_higher, is_number});
}

tile::Scalar KeyOrder::equals(Scalar a, Scalar b) {
  const Scalar numbers = compared(tiles_, "eq", a, b);
  if (!is_real(tiles_.dtype(a))) return numbers;
  const Scalar both_nan = tiles_.compute(
      Opcode::and_, {tiles_.compute(Opcode::is_nan, {a}), tiles_.compute(Opcode::is_nan, {b})});
  return tiles_.compute(Opcode::or_, {numbers, both_nan});
}

// From the last key to the first: before in it, or equal in it and before in the rest.
tile::Scalar KeyOrder::comes_before(const std::vector<Scalar>& a, const std::vector<Scalar>& b,
                                    std::optional<Scalar> otherwise) {
  std::optional<Scalar> before = otherwise;
  for (size_t k = a.size(); k-- > 0;) {
    const Scalar here = comes_before(a[k], b[k]);
    if (!before) {
      before = here;
      continue;
    }
    const Scalar in_rest = tiles_.compute(Opcode::and_, {equals(a[k], b[k]), *before});
    before = tiles_.compute(Opcode::or_, {here, in_rest});
  }
  return *before;
}

}  // namespace hone
