#include "front/onnx/registry.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "front/onnx/onnx.h"

namespace hone::onnx_io {
namespace {

constexpr Row kRows[] = {
#define HONE_ONNX(domain, name, since, mapping) {domain, #name, since, &mapping},
#include "front/onnx/onnx_ops.def"
};

// The newest version of each domain whose changes are all in the table.
constexpr struct {
  std::string_view domain;
  int newest;
} kDomains[] = {{default_domain, 28}, {microsoft, 1}, {ml, 5}, {training, 1}};

std::string full_name(std::string_view domain, std::string_view name) {
  return domain.empty() ? std::string(name) : fmt::format("{}.{}", domain, name);
}

using RowsByName = std::unordered_map<std::string_view, std::vector<const Row*>>;

const RowsByName& rows_by_name() {
  static const RowsByName* const index = [] {
    auto* made = new RowsByName;
    for (const Row& row : kRows) (*made)[row.name].push_back(&row);
    return made;
  }();
  return *index;
}

Error unknown_op(std::string_view domain, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : kRows)
    if (row.domain == domain) names.push_back(row.name);
  std::string meant = did_you_mean(name, names);
  Error error = unsupported("op {} is not known", full_name(domain, name));
  return std::move(error).with_hint(
      !meant.empty() ? meant : "'hone ops --onnx' lists the ops that hone imports");
}

}  // namespace

std::span<const Row> rows() { return kRows; }

Status check_domain(std::string_view domain, int64_t version) {
  auto at = std::find_if(std::begin(kDomains), std::end(kDomains),
                         [&](const auto& known) { return known.domain == domain; });
  if (at == std::end(kDomains)) return {};
  std::string_view shown = domain.empty() ? "ai.onnx" : domain;
  if (version < 1) return bad_input("opset {} of domain '{}': versions start at 1", version, shown);
  if (version > at->newest)
    return unsupported("opset {} of domain '{}' is newer than {}, the newest that is known",
                       version, shown, at->newest);
  return {};
}

std::optional<int> newest_version(std::string_view domain) {
  for (const auto& known : kDomains)
    if (known.domain == domain) return known.newest;
  return {};
}

Result<const Row*> find_row(std::string_view domain, std::string_view name, int version) {
  const Row* best = nullptr;
  bool known = false;
  auto candidates = rows_by_name().find(name);
  if (candidates == rows_by_name().end()) return unknown_op(domain, name);
  for (const Row* row : candidates->second) {
    if (row->domain != domain) continue;
    known = true;
    if (row->since <= version && (best == nullptr || row->since > best->since)) best = row;
  }
  if (best != nullptr) return best;
  if (known) return bad_input("op {} does not exist in opset {}", full_name(domain, name), version);
  return unknown_op(domain, name);
}

}  // namespace hone::onnx_io

namespace hone {

std::span<const OnnxOp> onnx_ops() {
  static const std::vector<OnnxOp> ops = [] {
    std::vector<OnnxOp> list;
    for (const onnx_io::Row& row : onnx_io::rows())
      list.push_back({row.domain, row.name, row.since});
    std::sort(list.begin(), list.end(), [](const OnnxOp& a, const OnnxOp& b) {
      return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
    });
    return list;
  }();
  return ops;
}

}  // namespace hone
