#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/type.h"

// The header of a .npy file: a magic number, a version, a length, and a Python dictionary.

namespace hone {

struct NpyHeader {
  DType dtype;
  bool big_endian;
  bool column_major;  // "fortran_order"
  Ints shape;
  size_t size;  // bytes of the header, all of it; the data follows
};

// The header of a file that starts with these bytes. The places of errors are filled in by the
// caller.
Result<NpyHeader> parse_npy_header(std::string_view file);

// "<f4" for f32; nothing for types that numpy lacks.
std::optional<std::string_view> npy_descr(DType dtype);

// Its size makes the data start at a multiple of 64 bytes if the header starts at `offset`.
std::string print_npy_header(std::string_view descr, std::span<const int64_t> shape,
                             int64_t offset);

}  // namespace hone
