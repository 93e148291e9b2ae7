#pragma once

#include <string_view>

namespace hone {

// Every field, in the form that print() gives it.
inline constexpr std::string_view kSampleTarget = R"(target "big one" {
  cpu = "Some \"CPU\" @ 3 GHz"
  isa = avx512 + avx512_bf16 + avx512_vnni + amx_int8
  cores = 8
  cache = 48 KiB for 1 core at 380 GB/s
  cache = 2 MiB for 2 cores at 101.25 GB/s
  cache = 105 MiB for 8 cores at 20.5 GB/s
  memory = 24 GiB at 12 GB/s a core, 80 GB/s in all
  peak f64 = 107.5 Gop/s
  peak f32 = 215 Gop/s
  peak bf16 = 430 Gop/s
  peak i8 = 6300 Gop/s
  fork_join = 2.1 us
  measured = true
}
)";

}  // namespace hone
