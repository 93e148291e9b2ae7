#include "front/hlo/bodies.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"

namespace hone::hlo {
namespace {

constexpr std::pair<std::string_view, std::string_view> kCombiners[] = {
    {"stablehlo.add", "sum"},     {"stablehlo.multiply", "product"}, {"stablehlo.maximum", "max"},
    {"stablehlo.minimum", "min"}, {"stablehlo.and", "and"},          {"stablehlo.or", "or"}};

std::string_view of_bools(std::string_view kind) {
  if (kind == "sum" || kind == "max") return "or";
  if (kind == "product" || kind == "min") return "and";
  return kind;
}

}  // namespace

std::optional<std::string_view> combiner(const Body& body) {
  const Region& region = *body.region;
  if (region.parameters.size() != 2 || region.results.size() != 1) return std::nullopt;
  const uint32_t first = region.first_parameter;
  const uint32_t result = region.results[0];
  if (result == first + 1) return "replace";
  for (const Instruction& one : region.instructions) {
    if (one.first_result != result || one.operands.size() != 2) continue;
    const bool both = (one.operands[0] == first && one.operands[1] == first + 1) ||
                      (one.operands[0] == first + 1 && one.operands[1] == first);
    if (!both) return std::nullopt;
    for (const auto& [op, kind] : kCombiners)
      if (op == one.name) {
        const ValueType& type = one.results[0];
        const bool truth = type.kind == ValueType::Kind::tensor && is_bool(type.type.dtype());
        return truth ? of_bools(kind) : kind;
      }
  }
  return std::nullopt;
}

bool has_op(std::string_view kind, DType type) {
  if (is_storage_only(type) || kind == "replace") return false;
  return kind == "and" || kind == "or" ? !is_real(type) : !is_bool(type);
}

Opcode opcode_of(std::string_view kind) {
  if (kind == "sum") return Opcode::add;
  if (kind == "product") return Opcode::mul;
  if (kind == "max") return Opcode::max;
  if (kind == "min") return Opcode::min;
  return kind == "and" ? Opcode::and_ : Opcode::or_;
}

bool is_identity(std::string_view kind, const Tensor& number) {
  if (number.elements() != 1) return false;
  const DType type = number.dtype();
  if (is_real(type)) {
    const double value = number.real_at(0);
    if (kind == "sum") return value == 0;
    if (kind == "product") return value == 1;
    if (kind == "max") return value == -std::numeric_limits<double>::infinity();
    return kind == "min" && value == std::numeric_limits<double>::infinity();
  }
  const int64_t value = number.integer_at(0);
  const IntegerLimits limits = is_bool(type) ? IntegerLimits{0, 1} : integer_limits(type);
  if (kind == "sum" || kind == "or") return value == 0;
  if (kind == "product") return value == 1;
  if (kind == "max") return value == limits.lowest;
  if (kind == "min") return value == limits.highest;
  return kind == "and" && value == wrap_to(type, -1);
}

Value spread(Value scalar, const Dims& dims) {
  return dims.empty() ? scalar : broadcast(scalar, dims, {});
}

// ---- Windows ------------------------------------------------------------------------------------

Windows windows_of(Node& n, int rank) {
  const auto count = static_cast<size_t>(rank);
  const Ints ones(count, 1);
  Windows windows = {.size = n.field("window", "window_dimensions|size", Ints()),
                     .stride = n.field("window", "window_strides|stride", ones),
                     .low = Ints(count, 0),
                     .high = Ints(count, 0),
                     .base_dilation = n.field("window", "base_dilations|lhs_dilate", ones),
                     .window_dilation = n.field("window", "window_dilations|rhs_dilate", ones)};
  const Ints padding = n.field("window", "padding|pad", Ints(2 * count, 0));
  for (const Ints* each :
       {&windows.size, &windows.stride, &windows.base_dilation, &windows.window_dilation}) {
    if (each->size() != count)
      n.refuse(
          bad_input("a window has {} numbers, but the operand has {} dims", each->size(), rank));
    for (const int64_t number : *each)
      if (number < 1 || number > (int64_t{1} << 40))
        n.refuse(bad_input("a window has the number {}; it must be 1 or more", number));
  }
  if (padding.size() != 2 * count)
    n.refuse(bad_input("there are {} numbers of padding for {} dims", padding.size(), rank));
  for (size_t i = 0; i < count; ++i) {
    windows.low[i] = padding[2 * i];
    windows.high[i] = padding[2 * i + 1];
  }
  return windows;
}

Value padded_base(Value x, Value value, const Windows& windows) {
  Ints interior = windows.base_dilation;
  for (int64_t& each : interior) --each;
  const Dims low(windows.low.begin(), windows.low.end());
  const Dims high(windows.high.begin(), windows.high.end());
  return x.builder().op(Opcode::pad, {x, value},
                        {{"low", low}, {"high", high}, {"interior", interior}});
}

Ints positions(Node& n, const Windows& windows, const Ints& padded) {
  Ints count(padded.size());
  for (size_t i = 0; i < padded.size(); ++i) {
    const std::optional<int64_t> reach =
        checked_mul(windows.size[i] - 1, windows.window_dilation[i]);
    if (!reach) n.refuse(over_limit("a window is too long"));
    count[i] = *reach + 1 > padded[i] ? 0 : (padded[i] - *reach - 1) / windows.stride[i] + 1;
  }
  return count;
}

Value at_place(Value padded, const Windows& windows, const Ints& positions, const Ints& place) {
  Dims start, limit;
  for (size_t i = 0; i < place.size(); ++i) {
    const int64_t first = place[i] * windows.window_dilation[i];
    start.push_back(first);
    limit.push_back(positions[i] == 0 ? first : first + (positions[i] - 1) * windows.stride[i] + 1);
  }
  return padded.builder().op(Opcode::slice, {padded},
                             {{"start", start}, {"limit", limit}, {"stride", windows.stride}});
}

void for_each_place(Node& n, const Windows& windows, const std::function<void(const Ints&)>& f) {
  constexpr int64_t kMost = 1 << 12;
  const std::optional<int64_t> count = checked_product(windows.size);
  if (!count || *count > kMost)
    n.refuse(
        unsupported("windows of more than {} elements with such a body are not handled", kMost));
  Ints place(windows.size.size(), 0);
  for (int64_t done = 0; done < *count; ++done) {
    f(place);
    for (size_t i = place.size(); i-- > 0;) {
      if (++place[i] < windows.size[i]) break;
      place[i] = 0;
    }
  }
}

}  // namespace hone::hlo
