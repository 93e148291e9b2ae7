#include "base/text.h"
#include "front/hlo/write/emit.h"

// Matrix products and convolutions.

namespace hone::hlo {
namespace {

// Both operands in one type: that of the result, if they differ.
Ids factors(Emit& e) {
  if (e.type(0).dtype() == e.type(1).dtype()) return e.all();
  const DType type = e.result_type().dtype();
  return {e.converted(e.in(0), e.type(0), type), e.converted(e.in(1), e.type(1), type)};
}

Ints or_all(const Ints& numbers, size_t count, int64_t each) {
  return numbers.empty() ? Ints(count, each) : numbers;
}

}  // namespace

Ids write_dot(Emit& e) {
  const Op op = e.op();
  return {e.op("stablehlo.dot_general", factors(e), e.result_type(),
               {{"dot_dimension_numbers",
                 record_of({{"lhs_batching_dimensions", list_of(op.ints("lhs_batch"))},
                            {"rhs_batching_dimensions", list_of(op.ints("rhs_batch"))},
                            {"lhs_contracting_dimensions", list_of(op.ints("lhs_contract"))},
                            {"rhs_contracting_dimensions", list_of(op.ints("rhs_contract"))}})}})};
}

Ids write_conv(Emit& e) {
  const Op op = e.op();
  const auto spatial = static_cast<size_t>(e.type(0).rank() - 2);
  std::string order = op.word("order");
  if (order.empty()) {
    std::string digits;
    for (size_t i = 0; i < spatial; ++i) digits += static_cast<char>('0' + i);
    order = fmt::format("bf{0}_oi{0}->bf{0}", digits);
  }
  return {e.op("stablehlo.convolution", factors(e), e.result_type(),
               {{"window_strides", list_of(or_all(op.ints("stride"), spatial, 1))},
                {"padding", pairs_of(or_all(op.ints("pad_low"), spatial, 0),
                                     or_all(op.ints("pad_high"), spatial, 0))},
                {"lhs_dilation", list_of(or_all(op.ints("input_dilation"), spatial, 1))},
                {"rhs_dilation", list_of(or_all(op.ints("kernel_dilation"), spatial, 1))},
                {"conv_dimension_numbers", word_of(e.writer().kept(order))},
                {"feature_group_count", number_of(op.integer("groups"))},
                {"batch_group_count", number_of(1)}})};
}

}  // namespace hone::hlo
