#pragma once

#include <optional>
#include <vector>

#include "program/tiles/tile_builder.h"

namespace hone {

// The order of sort as statements. NaN is above all numbers and equal to NaN.
class KeyOrder {
 public:
  using Scalar = tile::Scalar;

  KeyOrder(TileBuilder& tiles, bool descends) : tiles_(tiles), descends_(descends) {}

  // Compares the keys of two elements, the first one first. `otherwise` is for equal ones; without
  // it these do not come before each other.
  Scalar comes_before(const std::vector<Scalar>& a, const std::vector<Scalar>& b,
                      std::optional<Scalar> otherwise = {});

 private:
  Scalar comes_before(Scalar a, Scalar b);
  Scalar equals(Scalar a, Scalar b);

  TileBuilder& tiles_;
  const bool descends_;
};

// A comparison of two scalars: "lt", "eq", ....
tile::Scalar compared(TileBuilder& tiles, std::string_view direction, tile::Scalar a,
                      tile::Scalar b);

}  // namespace hone
