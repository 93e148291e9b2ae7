#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"
#include "ir/ops/contraction.h"
#include "ir/ops/conv_order.h"
#include "ir/ops/iter_names.h"
#include "ir/ops/window_axis.h"
#include "ir/reference/convolution.h"

// Convolution (cross-correlation: the kernel is not flipped) over any number of spatial dims.

namespace hone {
namespace {

constexpr AttrSpec kConvAttrs[] = {
    {"order", AttrKind::word, "\"\"",
     "Dims of input, kernel and result, as in 'b01f_01io->b01f'; empty: 'bf01_oi01->bf01'."},
    {"stride", AttrKind::ints, "[]", "Distance of windows, per spatial dim; empty: all 1.", "", 1},
    {"pad_low", AttrKind::ints, "[]", "Padding before each spatial dim, may crop; empty: all 0.",
     "", 0},
    {"pad_high", AttrKind::ints, "[]", "Padding after each spatial dim, may crop; empty: all 0.",
     "", 0},
    {"input_dilation", AttrKind::ints, "[]", "Distance of input elements; empty: all 1.", "", 1},
    {"kernel_dilation", AttrKind::ints, "[]", "Distance of kernel elements; empty: all 1.", "", 1},
    {"groups", AttrKind::integer, "1", "Parts of the features that are convolved on their own."},
    kAccumulateAttr,
    {"winograd", AttrKind::integer, "0",
     "The weights are a constant that keeps its accuracy if products are transformed by Winograd's "
     "F(n, 3) for n up to this; preparing a graph finds out. It changes no result otherwise."},
    kFlushAttr,
    kPartsAttr};

size_t at(int dim) { return static_cast<size_t>(dim); }

// The number of features of the input and of the result must fit the kernel and the groups.
Status check_features(Type input, Type kernel, const ConvOrder& order, int64_t groups) {
  if (groups < 1) return bad_input("groups is {}, not at least 1", groups);
  Dim in = input.dim(order.input_feature);
  Dim per_group = kernel.dim(order.kernel_input);
  if (in != per_group * groups) {
    demand(Demand::Kind::equal, in, per_group * groups);
    return bad_input("the input has {} features, but the kernel takes {} in each of {} groups",
                     in.to_string(), per_group.to_string(), groups);
  }
  Dim out = kernel.dim(order.kernel_output);
  if (!out.divided_by(groups)) {
    demand(Demand::Kind::multiple, out, groups);
    return bad_input("the kernel gives {} features, not {}a multiple of {} groups", out.to_string(),
                     out.is_static() ? "" : "provably ", groups);
  }
  return {};
}

Result<std::vector<Type>> infer_conv(const Application& app) {
  Type input = app.operand(0);
  Type kernel = app.operand(1);
  DType dtype = HONE_TRY(contraction_type(app.op, input.dtype(), kernel.dtype()));
  if (input.rank() < 2 || kernel.rank() != input.rank())
    return bad_input("the input {} and the kernel {} must have the same rank, at least 2",
                     input.to_string(), kernel.to_string());
  int spatial = input.rank() - 2;
  ConvOrder order = HONE_TRY(parse_conv_order(app.op.word("order"), spatial));
  std::vector<WindowParams> params =
      HONE_TRY(window_params(app.op, "kernel_dilation", spatial, "spatial dims"));
  HONE_TRY(check_features(input, kernel, order, app.op.integer("groups")));
  Dims result(at(input.rank()));
  result[at(order.output_batch)] = input.dim(order.input_batch);
  result[at(order.output_feature)] = kernel.dim(order.kernel_output);
  for (int i = 0; i < spatial; ++i) {
    result[at(order.output_spatial[at(i)])] = HONE_TRY(
        window_count(input.dim(order.input_spatial[at(i)]), kernel.dim(order.kernel_spatial[at(i)]),
                     params[at(i)], fmt::format("spatial dim {}", i)));
  }
  return single_result(dtype, result);
}

// Inference has accepted these.
ConvOrder order_of(Op op, int rank) { return *parse_conv_order(op.word("order"), rank - 2); }
std::vector<WindowParams> conv_params_of(Op op, int rank) {
  return *window_params(op, "kernel_dilation", rank - 2, "spatial dims");
}

AccessRelation access_conv(const Application& app, std::span<const Type> results) {
  Type input = app.operand(0);
  Type kernel = app.operand(1);
  int rank = input.rank();
  ConvOrder order = order_of(app.op, rank);
  std::vector<WindowParams> params = conv_params_of(app.op, rank);
  int64_t groups = app.op.integer("groups");

  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  Access in = {.index = std::vector<IndexExpr>(at(rank), 0)};
  Access weights = {.index = std::vector<IndexExpr>(at(rank), 0)};
  auto reduce_over = [&](Dim extent) {
    int n = static_cast<int>(relation.dims.size());
    relation.dims.push_back({reduction_name(n - rank), extent, IterKind::reduction});
    return IndexExpr::iter(n);
  };

  Dim per_group = kernel.dim(order.kernel_input);
  IndexExpr out_feature = IndexExpr::iter(order.output_feature);
  IndexExpr in_feature = reduce_over(per_group);
  weights.index[at(order.kernel_output)] = out_feature;
  weights.index[at(order.kernel_input)] = in_feature;
  in.index[at(order.input_batch)] = IndexExpr::iter(order.output_batch);
  in.index[at(order.input_feature)] = in_feature;
  Dim group_size = *kernel.dim(order.kernel_output).divided_by(groups);
  if (groups > 1 && !group_size.is(0))
    in.index[at(order.input_feature)] = in_feature + floordiv(out_feature, group_size) * per_group;

  for (int i = 0; i < rank - 2; ++i) {
    IndexExpr window = reduce_over(kernel.dim(order.kernel_spatial[at(i)]));
    weights.index[at(order.kernel_spatial[at(i)])] = window;
    int in_dim = order.input_spatial[at(i)];
    in.index[at(in_dim)] = window_index(IndexExpr::iter(order.output_spatial[at(i)]), window,
                                        input.dim(in_dim), params[at(i)], in.guards);
  }
  // A kernel element that meets padding is not used either.
  weights.guards = in.guards;
  relation.operands = {{in}, {weights}};
  relation.results = {Access{.index = identity_index(rank)}};
  return relation;
}

template <class D>
ConvProblem problem_of(EvalCall<D>& call) {
  Ints in = call.operand(0).dims();
  Ints kernel = call.operand(1).dims();
  Ints out = call.result().dims();
  int rank = static_cast<int>(in.size());
  ConvOrder order = order_of(call.op, rank);
  std::vector<WindowParams> params = conv_params_of(call.op, rank);
  Ints in_strides = row_major_strides(in);
  Ints kernel_strides = row_major_strides(kernel);
  Ints out_strides = row_major_strides(out);

  int64_t groups = call.op.integer("groups");
  ConvProblem problem = {.groups = groups,
                         .in_features = kernel[at(order.kernel_input)],
                         .out_features = out[at(order.output_feature)] / groups,
                         .in_feature_stride = in_strides[at(order.input_feature)],
                         .kernel_in_stride = kernel_strides[at(order.kernel_input)],
                         .kernel_out_stride = kernel_strides[at(order.kernel_output)],
                         .out_feature_stride = out_strides[at(order.output_feature)],
                         .axes = {}};
  problem.axes.push_back(
      {.window = {.in = in[at(order.input_batch)], .window = 1, .out = out[at(order.output_batch)]},
       .in_stride = in_strides[at(order.input_batch)],
       .kernel_stride = 0,
       .out_stride = out_strides[at(order.output_batch)]});
  for (size_t i = 0; i < params.size(); ++i) {
    size_t in_dim = at(order.input_spatial[i]);
    size_t kernel_dim = at(order.kernel_spatial[i]);
    size_t out_dim = at(order.output_spatial[i]);
    problem.axes.push_back({.window = {in[in_dim], kernel[kernel_dim], out[out_dim], params[i]},
                            .in_stride = in_strides[in_dim],
                            .kernel_stride = kernel_strides[kernel_dim],
                            .out_stride = out_strides[out_dim]});
  }
  return problem;
}

struct EvalConv {
  template <class D>
  static Status run(EvalCall<D>& call) {
    // Nothing to sum: the results are zero already.
    if (call.operand(0).size() == 0 || call.operand(1).size() == 0) return {};
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) {
      ContractionResult<T> finished(call.result().dtype());
      T* out = call.result().template as<T>().data();
      convolve(call.context.pool, problem_of(call), as_ring<T>(call.operand(0).template as<T>()),
               as_ring<T>(call.operand(1).template as<T>()),
               static_cast<int64_t>(call.operand(1).size()),
               [&](int64_t offset, const Ring<T>& sum) { out[offset] = finished(sum); });
    });
    return {};
  }
};

constexpr EvalTable kEvalConv = local_eval<EvalConv>();

}  // namespace

extern const OpDef op_def_conv;
const OpDef op_def_conv = {
    .opcode = Opcode::conv,
    .summary = "Sums products of a kernel with windows of the input; the kernel is not flipped.",
    .semantics =
        "Padding may be negative, which crops. Windows skip padding and the holes that "
        "input_dilation makes: a kernel element that is infinite or NaN has no effect there. "
        "Compiled code may multiply zeros instead, which makes NaN of such elements. "
        "Windows that do not fit are an error; a window that is longer than the padded input by at "
        "most the stride gives no windows. Result feature f belongs to group f / (features / "
        "groups). The operands have one element type, or two integer types if 'accumulate' is "
        "given. Integers are converted to the result's type first, so sums are exact modulo its "
        "2^bits. Reals are summed in an unspecified order. A sum over nothing is 0.",
    .operands = "input, kernel",
    .attrs = kConvAttrs,
    .dtypes = kNumber,
    .traits = {.is_local = true},
    .infer = &infer_conv,
    .access = &access_conv,
    .flops_per_point = 2,
    .eval = &kEvalConv,
    .derivative = &derivative_conv};

}  // namespace hone
