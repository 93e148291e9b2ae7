#pragma once

#include <optional>
#include <string_view>

#include "program/build/point_builder.h"

namespace hone {

// The frame of a builder of kernels by blocks of a GPU's threads: the body, the program, and the
// buffers of parameters and outputs.
class BlockBuilder {
 protected:
  using Scalar = tile::Scalar;
  using Indices = TileBuilder::Indices;
  using Guards = PointBuilder::Guards;

  BlockBuilder(const KernelBody& body, std::string_view name,
               const std::optional<PreparedInput>& prepared = {})
      : body_(body),
        graph_(body.graph),
        tiles_(name),
        place_(kernel_place(body, tiles_, prepared)) {}

  // Computes values at points of the loops that are open.
  PointBuilder points_here() { return {body_, tiles_, place_}; }
  TileProgram finished() { return std::move(tiles_).finish(); }

  const KernelBody& body_;
  const Graph& graph_;
  TileBuilder tiles_;
  const StagePlace place_;
};

}  // namespace hone
