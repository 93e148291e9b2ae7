#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "front/onnx/limits.h"

// The part of a file for the schema library: all messages, without the data of large tensors.

namespace hone::onnx_io {

// In a TensorProto of a skeleton: the index into Skeleton::payloads, once for each data field that
// was left out. The schema library keeps it as an unknown field. Files that have it are refused.
inline constexpr int kPayloadField = 20'000;

// Bytes [begin, end) of the file.
struct FileRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// The content of a data field that was left out: raw bytes, or packed numbers.
struct Payload {
  int field = 0;                  // its number in TensorProto
  std::vector<FileRange> pieces;  // one, in all files but odd ones; the content is their sequence
};

struct Skeleton {
  std::string bytes;
  std::vector<Payload> payloads;
};

enum class RootMessage : uint8_t { model, tensor };

// Data fields below `kLargePayload` bytes stay in the skeleton.
inline constexpr size_t kLargePayload = 256;
// Reads the frames of messages alone; the pages that large data lies in are not touched.
Result<Skeleton> scan(std::span<const std::byte> file, RootMessage root, const OnnxLimits& limits);

}  // namespace hone::onnx_io
