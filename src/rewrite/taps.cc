#include "rewrite/taps.h"

#include <vector>

#include "ir/functional.h"
#include "ir/ops/conv_order.h"
#include "ir/ops/window_axis.h"
#include "rewrite/constants.h"

// Where windows are wide and the image is small, the outer taps of a conv meet padding in every
// window. A kernel of 3x3 with taps that lie 36 apart is an example: on an image of 28x28, the tap
// in the middle alone meets elements. Taps without elements are cut off, and their padding too.

namespace hone {
namespace {

constexpr int64_t kMostTaps = 4096;  // of a dim; those of longer kernels are not looked at

// The taps [first, end) of a spatial dim are kept, with this padding around the input.
struct KeptTaps {
  int64_t first = 0, end = 0;
  int64_t dilation = 1, low = 0, high = 0;
};

class TrimmedConv {
 public:
  // None: no tap can be cut off, or nothing is known of them.
  static std::optional<TrimmedConv> of(const Graph& graph, NodeId n) {
    TrimmedConv conv(graph, n);
    bool any = false;
    for (const WindowAxis& axis : conv.axes()) {
      if (axis.window > kMostTaps) return std::nullopt;
      const KeptTaps taps = kept_taps(axis);
      if (taps.first == taps.end) return std::nullopt;  // nothing is summed, or not known
      any |= taps.end - taps.first < axis.window;
      conv.taps_.push_back(taps);
    }
    if (!any) return std::nullopt;
    return conv;
  }

  // For an input and weights.
  Result<Graph> build() const {
    Builder b;
    const Value x = b.parameter("x", type_of_operand(0));
    Value w = b.parameter("w", type_of_operand(1));
    Ints low, high, dilation;
    for (size_t i = 0; i < taps_.size(); ++i) {
      const KeptTaps& taps = taps_[i];
      if (!w.dim(order_.kernel_spatial[i]).is(taps.end - taps.first))
        w = slice(w, order_.kernel_spatial[i], taps.first, taps.end);
      low.push_back(taps.low), high.push_back(taps.high), dilation.push_back(taps.dilation);
    }
    const Attrs changes = {{"pad_low", low}, {"pad_high", high}, {"kernel_dilation", dilation}};
    return b.finish({b.op(Opcode::conv, {x, w}, changed_attrs(op_, changes))});
  }

 private:
  TrimmedConv(const Graph& graph, NodeId n)
      : graph_(graph),
        conv_(n),
        op_(graph.op(n)),
        order_(*parse_conv_order(op_.word("order"), graph.type(graph.result(n)).rank() - 2)) {}

  Type type_of_operand(size_t i) const { return graph_.type(graph_.operands(conv_)[i]); }

  // The spatial dims; one without windows stands for a dim whose size is not known.
  std::vector<WindowAxis> axes() const {
    const std::vector<WindowParams> params =
        *window_params(op_, "kernel_dilation", order_.spatial_rank(), "spatial dims");
    std::vector<WindowAxis> axes;
    for (size_t i = 0; i < params.size(); ++i) {
      const Dim in = type_of_operand(0).dim(order_.input_spatial[i]);
      const Dim window = type_of_operand(1).dim(order_.kernel_spatial[i]);
      const Dim out = graph_.type(graph_.result(conv_)).dim(order_.output_spatial[i]);
      const bool is_known = in.is_static() && window.is_static() && out.is_static();
      axes.push_back(is_known ? WindowAxis{in.value(), window.value(), out.value(), params[i]}
                              : WindowAxis{0, 0, 0, params[i]});
    }
    return axes;
  }

  static KeptTaps kept_taps(const WindowAxis& axis) {
    const WindowParams& params = axis.params;
    KeptTaps taps = {.first = 0,
                     .end = axis.window,
                     .dilation = params.window_dilation,
                     .low = params.pad_low,
                     .high = params.pad_high};
    const auto meets_elements = [&](int64_t tap) {
      return axis.elements(0, axis.out, tap).count > 0;
    };
    while (taps.first < taps.end && !meets_elements(taps.first)) ++taps.first;
    while (taps.first < taps.end && !meets_elements(taps.end - 1)) --taps.end;
    taps.low -= taps.first * params.window_dilation;
    taps.high -= (axis.window - taps.end) * params.window_dilation;
    if (taps.end - taps.first == 1) taps.dilation = 1;
    return taps;
  }

  const Graph& graph_;
  const NodeId conv_;
  const Op op_;
  const ConvOrder order_;
  std::vector<KeptTaps> taps_;  // by spatial dim
};

}  // namespace

Result<std::optional<Graph>> without_idle_taps(const Graph& graph, NodeId conv) {
  const std::optional<TrimmedConv> trimmed = TrimmedConv::of(graph, conv);
  if (!trimmed) return std::optional<Graph>();
  return std::optional(HONE_TRY(trimmed->build()));
}

}  // namespace hone
