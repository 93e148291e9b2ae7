#include <algorithm>

#include "base/checked_math.h"
#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"
#include "ir/ops/iter_names.h"
#include "ir/ops/window_axis.h"
#include "ir/reference/combine.h"

// Reductions over windows that slide over every dim: pooling.

namespace hone {
namespace {

constexpr AttrSpec kWindowAttrs[] = {
    {"kind", AttrKind::word, "", "How elements are combined.", "sum|product|max|min"},
    {"window", AttrKind::ints, "", "The number of positions of a window, per dim."},
    {"stride", AttrKind::ints, "[]", "Distance of windows, per dim; empty: all 1.", "", 1},
    {"pad_low", AttrKind::ints, "[]", "Padding before each dim, may crop; empty: all 0.", "", 0},
    {"pad_high", AttrKind::ints, "[]", "Padding after each dim, may crop; empty: all 0.", "", 0},
    {"input_dilation", AttrKind::ints, "[]", "Distance of input elements; empty: all 1.", "", 1},
    {"window_dilation", AttrKind::ints, "[]", "Distance of positions; empty: all 1.", "", 1}};

Result<std::vector<Type>> infer_window_reduce(const Application& app) {
  Type operand = app.operand(0);
  const Ints& window = app.op.ints("window");
  HONE_TRY(expect_per_dim(window.size(), "window", operand.rank()));
  std::vector<WindowParams> params =
      HONE_TRY(window_params(app.op, "window_dilation", operand.rank(), "dims"));
  Dims result;
  for (int i = 0; i < operand.rank(); ++i) {
    size_t d = static_cast<size_t>(i);
    result.push_back(
        HONE_TRY(window_count(operand.dim(i), window[d], params[d], fmt::format("dim {}", i))));
  }
  return single_result(operand.dtype(), result);
}

AccessRelation access_window_reduce(const Application& app, std::span<const Type> results) {
  Type operand = app.operand(0);
  int rank = operand.rank();
  const Ints& window = app.op.ints("window");
  std::vector<WindowParams> params = *window_params(app.op, "window_dilation", rank, "dims");
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  Access access;
  for (int i = 0; i < rank; ++i) {
    size_t d = static_cast<size_t>(i);
    IndexExpr position = 0;
    if (window[d] != 1) {
      int n = static_cast<int>(relation.dims.size());
      relation.dims.push_back({reduction_name(n - rank), window[d], IterKind::reduction});
      position = IndexExpr::iter(n);
    }
    access.index.push_back(
        window_index(IndexExpr::iter(i), position, operand.dim(i), params[d], access.guards));
  }
  relation.operands = {{access}};
  relation.results = {Access{.index = identity_index(rank)}};
  return relation;
}

// Windows over a tensor of known dims, in rows along one of them.
class WindowRows {
 public:
  WindowRows(Op op, const Ints& in, const Ints& out)
      : in_strides_(row_major_strides(in)), out_strides_(row_major_strides(out)) {
    std::vector<WindowParams> params =
        *window_params(op, "window_dilation", static_cast<int>(in.size()), "dims");
    for (size_t i = 0; i < in.size(); ++i)
      axes_.push_back({in[i], op.ints("window")[i], out[i], params[i]});
    if (axes_.empty()) {
      axes_.push_back({});
      in_strides_.push_back(1);
      out_strides_.push_back(1);
    }
    row_ = axes_.size() - 1;
    while (row_ > 0 && axes_[row_].out == 1) --row_;
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (i != row_) rows_ *= axes_[i].out;
      positions_ *= axes_[i].window;
    }
  }

  int64_t rows() const { return rows_; }
  int64_t positions() const { return positions_; }  // of one window

  // Combines each window of a row, position by position.
  template <class T, class C>
  void reduce_row(const C& combine, int64_t row, const T* in, T* out) const {
    const WindowAxis& axis = axes_[row_];
    Ints index(axes_.size(), 0);
    int64_t rest = row;
    for (size_t i = axes_.size(); i-- > 0;) {
      if (i == row_) continue;
      index[i] = rest % axes_[i].out;
      rest /= axes_[i].out;
      out += index[i] * out_strides_[i];
    }
    const int64_t out_step = out_strides_[row_];
    for (int64_t o = 0; o < axis.out; ++o) out[o * out_step] = combine.identity();
    Ints position(axes_.size(), 0);
    for (int64_t p = 0; p < positions_; ++p, advance(position)) {
      std::optional<int64_t> offset = row_offset(index, position);
      if (!offset) continue;
      WindowAxis::Run run = axis.elements(0, axis.out, position[row_]);
      const int64_t first_in = *offset + run.first_in * in_strides_[row_];
      const int64_t in_step = run.in_step * in_strides_[row_];
      const int64_t first_out = run.first_out * out_step;
      for (int64_t i = 0; i < run.count; ++i) {
        T& value = out[first_out + i * run.out_step * out_step];
        value = combine(value, in[first_in + i * in_step]);
      }
    }
  }

 private:
  void advance(Ints& position) const {
    for (size_t i = axes_.size(); i-- > 0;) {
      if (++position[i] < axes_[i].window) return;
      position[i] = 0;
    }
  }

  // Where the row reads at a position of its windows, but for its own axis.
  std::optional<int64_t> row_offset(const Ints& index, const Ints& position) const {
    int64_t offset = 0;
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (i == row_) continue;
      std::optional<int64_t> element = axes_[i].element(index[i], position[i]);
      if (!element) return std::nullopt;
      offset += *element * in_strides_[i];
    }
    return offset;
  }

  std::vector<WindowAxis> axes_;
  Ints in_strides_;
  Ints out_strides_;
  size_t row_ = 0;
  int64_t rows_ = 1;
  int64_t positions_ = 1;
};

struct EvalWindowReduce {
  template <class T, class D, class C>
  static void run(EvalCall<D>& call, const C& combine) {
    if (call.result().size() == 0) return;
    const T* in = call.operand(0).template as<T>().data();
    T* out = call.result().template as<T>().data();
    WindowRows windows(call.op, call.operand(0).dims(), call.result().dims());
    call.context.pool.parallel_for(0, windows.rows(), 0, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) windows.reduce_row(combine, row, in, out);
    });
  }
};

constexpr EvalTable kEvalWindowReduce = local_eval<EvalKind<EvalWindowReduce>>();

}  // namespace

extern const OpDef op_def_window_reduce;
const OpDef op_def_window_reduce = {
    .opcode = Opcode::window_reduce,
    .summary = "Combines the elements of each of the windows that slide over every dim.",
    .semantics =
        "Kinds are as for reduce. Padding, which may be negative to crop, and the holes of "
        "input_dilation hold the identity: they change nothing. A window without elements gives "
        "the identity.",
    .operands = "x",
    .attrs = kWindowAttrs,
    .dtypes = kNumber,
    .traits = {.is_local = true},
    .infer = &infer_window_reduce,
    .access = &access_window_reduce,
    .flops_per_point = 1,
    .eval = &kEvalWindowReduce,
    .derivative = &derivative_window_reduce};

}  // namespace hone
