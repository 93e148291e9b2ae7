#include <algorithm>
#include <string>

#include "ir/derivatives/rules.h"
#include "ir/ops/conv_order.h"
#include "ir/ops/window_axis.h"

// Both ways back through a conv are convs. The input gets the cotangents through the flipped
// kernel, with strides as holes. The kernel gets windows of the input that are as large as the
// result, with the batch summed as if it were features.

namespace hone {

namespace {

std::vector<Value> conv_tangent(const TangentCall& call) {
  auto applied = [&](Value input, Value kernel) {
    return call.builder.ops(call.op, std::vector{input, kernel})[0];
  };
  Value left = call.tangent(0) ? applied(call.tangent(0), call.operand(1)) : Value();
  Value right = call.tangent(1) ? applied(call.operand(0), call.tangent(1)) : Value();
  return {sum_of(left, right)};
}

// The letters of one tensor: `first` and `second` at their dims, digits at the spatial dims.
std::string letters(int rank, int first_dim, char first, int second_dim, char second,
                    const std::vector<int>& spatial) {
  std::string text(static_cast<size_t>(rank), '?');
  text[static_cast<size_t>(first_dim)] = first;
  text[static_cast<size_t>(second_dim)] = second;
  for (size_t i = 0; i < spatial.size(); ++i)
    text[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
  return text;
}

class ConvBack {
 public:
  explicit ConvBack(const TransposeCall& call)
      : call_(call),
        input_(call.type(0)),
        kernel_(call.type(1)),
        ct_(call.cotangent()),
        spatial_(input_.rank() - 2),
        order_(*parse_conv_order(call.op.word("order"), spatial_)),
        params_(*window_params(call.op, "kernel_dilation", spatial_, "spatial dims")),
        groups_(call.op.integer("groups")) {}

  // In sizes: padded cotangents = spread input + spread kernel - 1.
  Value to_input() {
    Value kernel = with_groups_inside(cast(call_.operands[1], ct_.dtype()));
    Ints axes(order_.kernel_spatial.begin(), order_.kernel_spatial.end());
    Attrs attrs = {{"order", letters_of_result('b', 'f') + "_" + letters_of_kernel('i', 'o') +
                                 "->" + letters_of_input('b', 'f')},
                   {"groups", groups_}};
    Ints stride, low, high, holes, dilation;
    for (int i = 0; i < spatial_; ++i) {
      const WindowParams& p = params_[static_cast<size_t>(i)];
      const Dim reach = (kernel_size(i) - 1) * p.window_dilation;
      stride.push_back(p.in_dilation);
      holes.push_back(p.stride);
      dilation.push_back(p.window_dilation);
      low.push_back(number(reach - p.pad_low, i));
      const Dim wanted = (input_size(i) - 1) * p.in_dilation + 1 + reach;
      high.push_back(number(wanted - low.back() - ((result_size(i) - 1) * p.stride + 1), i));
    }
    return finished(ct_, reverse(kernel, axes), attrs, {stride, low, high, holes, dilation},
                    input_);
  }

  Value to_kernel() {
    Value input = with_groups_in_batch(cast(call_.operands[0], ct_.dtype()));
    Attrs attrs = {{"order", letters_of_input('f', 'b') + "_" + letters_of_result('i', 'o') + "->" +
                                 letters_of_kernel('f', 'b')},
                   {"groups", groups_}};
    Ints stride, low, high, holes, dilation;
    for (int i = 0; i < spatial_; ++i) {
      const WindowParams& p = params_[static_cast<size_t>(i)];
      stride.push_back(p.window_dilation);
      holes.push_back(p.in_dilation);
      dilation.push_back(p.stride);
      low.push_back(p.pad_low);
      const Dim wanted =
          (kernel_size(i) - 1) * p.window_dilation + 1 + (result_size(i) - 1) * p.stride;
      high.push_back(number(wanted - p.pad_low - ((input_size(i) - 1) * p.in_dilation + 1), i));
    }
    return finished(input, ct_, attrs, {stride, low, high, holes, dilation}, kernel_);
  }

 private:
  Dim input_size(int i) const { return input_.dim(order_.input_spatial[static_cast<size_t>(i)]); }
  Dim kernel_size(int i) const {
    return kernel_.dim(order_.kernel_spatial[static_cast<size_t>(i)]);
  }
  Dim result_size(int i) const { return ct_.dim(order_.output_spatial[static_cast<size_t>(i)]); }

  std::string letters_of_input(char batch, char feature) const {
    return letters(input_.rank(), order_.input_batch, batch, order_.input_feature, feature,
                   order_.input_spatial);
  }
  std::string letters_of_result(char batch, char feature) const {
    return letters(input_.rank(), order_.output_batch, batch, order_.output_feature, feature,
                   order_.output_spatial);
  }
  std::string letters_of_kernel(char output, char input) const {
    return letters(input_.rank(), order_.kernel_output, output, order_.kernel_input, input,
                   order_.kernel_spatial);
  }

  // Paddings are numbers: what they depend on must be known.
  int64_t number(Dim dim, int i) {
    if (dim.is_static()) return dim.value();
    call_.builder.fail(
        unsupported("the derivative of a conv pads spatial dim {} by {}, which must be a number", i,
                    dim.to_string())
            .with_hint("give the symbols sizes first (--dim NAME=SIZE)"));
    return 0;
  }

  // Moves the groups from one dim to another one: [.., g * a, .., b, ..] to [.., a, .., g * b, ..].
  Value regrouped(Value x, int from, int to) const {
    if (groups_ == 1 || !x.builder().ok()) return x;
    Dims dims = x.dims(), split, result = dims;
    Ints permutation;
    const Dim part = *dims[static_cast<size_t>(from)].divided_by(groups_);
    for (int i = 0, at = 0; i < x.rank(); ++i, ++at) {
      if (i == from) {
        split.push_back(groups_);
        ++at;
        split.push_back(part);
        permutation.push_back(at);
      } else {
        split.push_back(dims[static_cast<size_t>(i)]);
        permutation.push_back(at);
      }
    }
    permutation.insert(permutation.begin() + to, from);
    result[static_cast<size_t>(from)] = part;
    result[static_cast<size_t>(to)] = dims[static_cast<size_t>(to)] * groups_;
    return reshape(transpose(reshape(x, split), permutation), result);
  }
  Value with_groups_inside(Value kernel) const {
    return regrouped(kernel, order_.kernel_output, order_.kernel_input);
  }
  Value with_groups_in_batch(Value input) const {
    return regrouped(input, order_.input_feature, order_.input_batch);
  }

  struct Windows {
    Ints stride, low, high, holes, dilation;
  };
  Value finished(Value input, Value kernel, Attrs attrs, const Windows& windows, Type wanted) {
    Builder& b = call_.builder;
    // Without elements on a side the sums are empty.
    if (ct_.type().elements().is(0) || wanted.elements().is(0)) return zeros_of(b, wanted);
    attrs.emplace_back("stride", windows.stride);
    attrs.emplace_back("pad_low", windows.low);
    attrs.emplace_back("pad_high", windows.high);
    attrs.emplace_back("input_dilation", windows.holes);
    attrs.emplace_back("kernel_dilation", windows.dilation);
    return cast(b.op(Opcode::conv, {input, kernel}, attrs), wanted.dtype());
  }

  const TransposeCall& call_;
  Type input_, kernel_;
  Value ct_;
  int spatial_;
  ConvOrder order_;
  std::vector<WindowParams> params_;
  int64_t groups_;
};

std::vector<Value> conv_back(const TransposeCall& call) {
  if (call.linear[0] && call.linear[1]) return not_linear(call);
  ConvBack back(call);
  return {call.linear[0] ? back.to_input() : Value(), call.linear[1] ? back.to_kernel() : Value()};
}

}  // namespace

const Derivative derivative_conv = {.tangent = conv_tangent, .transpose = conv_back};

}  // namespace hone
