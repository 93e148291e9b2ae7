#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/build/point_builder.h"
#include "program/tiles/tiles.h"

namespace hone {

// The builder of each algorithm: build_gemm(), .... The schedule fits the body.
#define HONE_ALGORITHM(member, ...)                                                    \
  Result<TileProgram> build_##member(const KernelBody& body, const Schedule& schedule, \
                                     std::string_view name);
#include "kernel/algorithms.def"

// The same as a stage of a chain.
void build_nest(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles);
void build_gemm(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles);
// The same as a part of a kernel by blocks, in phases of its own.
void build_block_tiles(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                       TileBuilder& tiles);

}  // namespace hone
