#include "ir/ops/conv_order.h"

#include <fmt/format.h>

namespace hone {

namespace {

constexpr std::string_view kDigits = "0123456789";

// The positions of `first`, `second` and of the digits in one tensor's part of the order.
Status read_part(std::string_view part, char first, char second, int spatial_rank, int& first_dim,
                 int& second_dim, std::vector<int>& spatial) {
  std::string wanted = {first, second};
  wanted += kDigits.substr(0, static_cast<size_t>(spatial_rank));
  for (char c : wanted) {
    size_t at = part.find(c);
    if (part.size() != wanted.size() || at == std::string_view::npos)
      return bad_input("order: '{}' does not have each of '{}' once", part, wanted);
    int dim = static_cast<int>(at);
    if (c == first) {
      first_dim = dim;
    } else if (c == second) {
      second_dim = dim;
    } else {
      spatial.push_back(dim);
    }
  }
  return {};
}

}  // namespace

Result<ConvOrder> parse_conv_order(std::string_view text, int spatial_rank) {
  if (spatial_rank > kMaxSpatialRank)
    return bad_input("has {} spatial dims, at most {} are possible", spatial_rank, kMaxSpatialRank);
  std::string default_order;
  if (text.empty()) {
    std::string_view digits = kDigits.substr(0, static_cast<size_t>(spatial_rank));
    default_order = fmt::format("bf{0}_oi{0}->bf{0}", digits);
    text = default_order;
  }
  size_t underscore = text.find('_');
  size_t arrow = text.find("->");
  if (underscore == std::string_view::npos || arrow == std::string_view::npos || arrow < underscore)
    return bad_input("order '{}' is not of the form 'bf01_oi01->bf01'", text);
  ConvOrder order;
  HONE_TRY(read_part(text.substr(0, underscore), 'b', 'f', spatial_rank, order.input_batch,
                     order.input_feature, order.input_spatial));
  HONE_TRY(read_part(text.substr(underscore + 1, arrow - underscore - 1), 'o', 'i', spatial_rank,
                     order.kernel_output, order.kernel_input, order.kernel_spatial));
  HONE_TRY(read_part(text.substr(arrow + 2), 'b', 'f', spatial_rank, order.output_batch,
                     order.output_feature, order.output_spatial));
  return order;
}

}  // namespace hone
