#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "front/onnx/node.h"

namespace hone::onnx_io {

inline constexpr std::string_view default_domain = "";
inline constexpr std::string_view microsoft = "com.microsoft";
inline constexpr std::string_view ml = "ai.onnx.ml";
inline constexpr std::string_view training = "ai.onnx.preview.training";

#define HONE_ONNX(domain, name, since, mapping) void mapping(Node& node);
#include "front/onnx/onnx_ops.def"

struct Row {
  std::string_view domain;
  std::string_view name;
  int since;
  void (*mapping)(Node&);
};

std::span<const Row> rows();
// True if the version of an imported domain is one that is known; domains of local functions are.
Status check_domain(std::string_view domain, int64_t version);
// The newest version of a domain that is known; null for a domain that is not.
std::optional<int> newest_version(std::string_view domain);
// The row for a version of the domain; the error says whether the op, the version or the domain is
// unknown, and what is meant instead.
Result<const Row*> find_row(std::string_view domain, std::string_view name, int version);

}  // namespace hone::onnx_io
