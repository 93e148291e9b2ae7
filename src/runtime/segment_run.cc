#include "runtime/segment_run.h"

#include "base/checked_math.h"
#include "base/memory_hint.h"
#include "base/text.h"
#include "runtime/executable.h"
#include "runtime/open_image.h"
#include "tensor/held_bytes.h"
#include "tensor/pieces.h"

namespace hone {

namespace {

using namespace segments;

class SegmentRun {
 public:
  SegmentRun(const SegmentTree& tree, const RunUnit& run, const SegmentLimits& options)
      : tree_(tree),
        run_(run),
        options_(options),
        depth_(options.depth),
        values_(tree.values.size()) {}

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) define(static_cast<uint32_t>(i), inputs[i]);
    HONE_TRY(steps(tree_.steps));
    return read_all(tree_.outputs);
  }

 private:
  std::string name(uint32_t v) const { return excerpt(tree_.values[v]); }
  Result<Tensor> read(uint32_t v) const {
    if (values_[v]) return values_[v];
    return bad_input("value '{}' is read before it exists", name(v));
  }
  Result<std::vector<Tensor>> read_all(const std::vector<uint32_t>& list) const {
    std::vector<Tensor> all;
    for (uint32_t v : list) all.push_back(HONE_TRY(read(v)));
    return all;
  }
  Result<bool> flag(uint32_t v) const {
    const Tensor value = HONE_TRY(read(v));
    if (value.type() == Type::scalar(DType::boolean)) return value.integer_at(0) != 0;
    return bad_input("condition '{}' is {}, must be bool[]", name(v), value.type().to_string());
  }
  void define(uint32_t v, Tensor value) {
    held_.add(value);
    if (values_[v])
      held_.drop(values_[v]);
    else
      defined_.push_back(v);
    values_[v] = std::move(value);
  }
  Status check_memory(int64_t more = 0) const {
    if (more <= options_.max_bytes - held_.bytes()) return {};
    return over_limit("segments hold {} bytes and need {} more; the limit is {}", held_.bytes(),
                      more, options_.max_bytes)
        .with_hint(std::string(kMemoryHint));
  }
  // Values of a body are not seen outside.
  void forget_since(size_t count) {
    for (size_t i = count; i < defined_.size(); ++i) {
      held_.drop(values_[defined_[i]]);
      values_[defined_[i]] = {};
    }
    defined_.resize(count);
  }

  Status steps(const std::vector<Step>& list) {
    if (++depth_ > SegmentLimits::kMaxDepth)
      return over_limit("segments are nested more than {} deep", SegmentLimits::kMaxDepth);
    for (const Step& step : list)
      HONE_TRY(std::visit([this](const auto& kind) { return one(kind); }, step.kind));
    --depth_;
    return {};
  }
  SegmentLimits left() const {
    return {.cancel = options_.cancel,
            .max_trips = options_.max_trips - trips_,
            .max_bytes = options_.max_bytes - held_.bytes(),
            .depth = depth_};
  }
  // The results, of which nothing else is left.
  Result<std::vector<Tensor>> body(const segments::Body& body, size_t outside) {
    HONE_TRY(steps(body.steps));
    std::vector<Tensor> results = HONE_TRY(read_all(body.results));
    forget_since(outside);
    return results;
  }

  Status one(const Unit& unit) {
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    Result<std::vector<Tensor>> outputs = run_(unit.unit, HONE_TRY(read_all(unit.inputs)), left());
    Status good = outputs.ok() ? crop(unit, *outputs) : outputs.error();
    if (!good.ok())
      return std::move(good).error().within(
          fmt::format("segment '{}'", excerpt(tree_.units[unit.unit])));
    for (size_t i = 0; i < outputs->size(); ++i)
      if (unit.outputs[i] != kNone) define(unit.outputs[i], std::move((*outputs)[i]));
    return check_memory();
  }

  static Status crop(const Unit& unit, std::vector<Tensor>& outputs) {
    for (const segments::Crop& crop : unit.crops) {
      Tensor& output = outputs[crop.output];
      const Tensor& number = outputs[crop.count];
      if (crop.axis >= static_cast<uint32_t>(output.type().rank()))
        return bad_input("output {} is cut along axis {}, but is {}", crop.output, crop.axis,
                         output.type().to_string());
      if (number.type().rank() != 0 || !is_integer(number.dtype()))
        return bad_input("output {} is cut to a number that is {}", crop.output,
                         number.type().to_string());
      const int axis = static_cast<int>(crop.axis);
      const int64_t count = number.integer_at(0), size = output.type().dim(axis).value();
      if (count < 0 || count > size) {
        Error error = bad_input("output {} is cut to {} along axis {}, which has {}", crop.output,
                                count, axis, size);
        // A size that data gives has as much room as any size may have.
        return count > size ? std::move(error).as(ErrorCode::limit) : error;
      }
      output = cut(output, axis, count);
    }
    return {};
  }

  Status one(const If& branch) {
    const bool holds = HONE_TRY(flag(branch.condition));
    std::vector<Tensor> results =
        HONE_TRY(body(holds ? branch.on_true : branch.on_false, defined_.size()));
    for (size_t i = 0; i < results.size(); ++i) define(branch.results[i], std::move(results[i]));
    return {};
  }

  Result<bool> goes_on(const Loop& loop, int64_t done, bool condition) {
    if (!condition) return false;
    if (loop.trip_count != kNone) {
      const Tensor trips = HONE_TRY(read(loop.trip_count));
      if (trips.type().rank() != 0 || !is_integer(trips.dtype()))
        return bad_input("trip count '{}' is {}, not a scalar integer", name(loop.trip_count),
                         trips.type().to_string());
      const int64_t count = trips.integer_at(0);
      const bool is_huge = trips.dtype() == DType::u64 && count < 0;
      if (!is_huge && done >= count) return false;
    }
    if (++trips_ > options_.max_trips)
      return over_limit("loops have run {} times", options_.max_trips);
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    return true;
  }

  Status one(const Loop& loop) {
    std::vector<Tensor> carried;
    for (const Loop::Carried& one : loop.carried) carried.push_back(HONE_TRY(read(one.initial)));
    std::vector<std::vector<Tensor>> grown;
    for (uint32_t v : loop.grown) {
      grown.push_back({HONE_TRY(read(v))});
      held_.add(grown.back()[0]);
      if (grown.back()[0].type().rank() == 0)
        return bad_input("'{}' grows in a loop, but has no axis to grow along", name(v));
    }
    bool condition = loop.condition == kNone || HONE_TRY(flag(loop.condition));
    for (int64_t done = 0; HONE_TRY(goes_on(loop, done, condition)); ++done)
      HONE_TRY(iteration(loop, done, carried, grown, condition));
    for (size_t i = 0; i < carried.size(); ++i) define(loop.results[i], std::move(carried[i]));
    for (size_t i = 0; i < grown.size(); ++i) {
      int64_t more = 0;
      for (const Tensor& piece : grown[i]) more += piece.byte_size();
      HONE_TRY(check_memory(more));
      define(loop.results[carried.size() + i], HONE_TRY(joined(grown[i])));
      for (const Tensor& piece : grown[i]) held_.drop(piece);
    }
    return {};
  }

  Status iteration(const Loop& loop, int64_t done, std::vector<Tensor>& carried,
                   std::vector<std::vector<Tensor>>& grown, bool& condition) {
    const size_t outside = defined_.size();
    if (loop.counter != kNone)
      define(loop.counter, Tensor::from_integers(Type::scalar(DType::i64), {&done, 1}));
    for (size_t i = 0; i < carried.size(); ++i)
      define(loop.carried[i].value, std::move(carried[i]));
    HONE_TRY(steps(loop.body.steps));
    std::vector<Tensor> results = HONE_TRY(read_all(loop.body.results));
    condition = loop.next_condition == kNone || HONE_TRY(flag(loop.next_condition));
    forget_since(outside);
    for (size_t i = 0; i < grown.size(); ++i)
      HONE_TRY(grow(grown[i], std::move(results[carried.size() + i]), done));
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = std::move(results[i]);
    return {};
  }

  Status grow(std::vector<Tensor>& parts, Tensor piece, int64_t done) {
    const Type first = parts[0].type(), next = piece.type();
    // A start without rows does not say how long they are.
    if (parts.size() == 1 && first.dim(0).is(0) && first.rank() == next.rank() &&
        first.dtype() == next.dtype()) {
      held_.add(piece);
      held_.drop(parts[0]);
      parts[0] = std::move(piece);
      return {};
    }
    if (next.rank() == 0 || with_dim(first, 0, 0) != with_dim(next, 0, 0))
      return bad_input("a result of a loop is {}, but grows by {} in iteration {}",
                       first.to_string(), next.to_string(), done);
    held_.add(piece);
    parts.push_back(std::move(piece));
    return check_memory();
  }

  const SegmentTree& tree_;
  const RunUnit& run_;
  const SegmentLimits options_;
  int64_t trips_ = 0;              // of all loops
  int depth_;                      // of the steps that run now
  std::vector<Tensor> values_;     // by number
  std::vector<uint32_t> defined_;  // of values_, as they came
  HeldBytes held_;                 // by values_, and by what grows in loops
};

}  // namespace

Result<std::vector<Tensor>> run_segments(const SegmentTree& tree, std::span<const Tensor> inputs,
                                         const RunUnit& run, const SegmentLimits& options) {
  return SegmentRun(tree, run, options).run(inputs);
}

SegmentLimits SegmentLimits::beside(std::span<const Tensor> inputs) const {
  SegmentLimits limits = *this;
  for (const Tensor& input : inputs)
    limits.max_bytes = checked_add(limits.max_bytes, input.byte_size()).value_or(INT64_MAX);
  return limits;
}

Result<std::vector<Tensor>> run_segments(const SegmentTree& tree,
                                         std::span<const image::Port> input_ports,
                                         std::span<const image::Port> output_ports,
                                         std::span<const Tensor> inputs, const RunUnit& run,
                                         const SegmentLimits& limits) {
  Bindings sizes = HONE_TRY(bind_ports(input_ports, types_of(inputs)));
  std::vector<Tensor> outputs = HONE_TRY(run_segments(tree, inputs, run, limits.beside(inputs)));
  for (size_t i = 0; i < outputs.size(); ++i)
    HONE_TRY(check_output(output_ports[i], outputs[i].type(), sizes));
  return outputs;
}

Result<std::vector<Tensor>> run_unit(const Runnable& code, uint32_t unit,
                                     std::span<const Tensor> inputs, const SegmentLimits& left,
                                     const RunOptions& options, std::vector<UnitTimes>* times) {
  // They are held until the last unit that reads them has run.
  int64_t bytes = 0;
  for (const image::Port& output : code.outputs())
    bytes = checked_add(bytes, output.type.static_bytes()).value_or(INT64_MAX);
  if (bytes > left.max_bytes)
    return over_limit("the results of a segment take {} bytes; {} are left", bytes,
                      std::max<int64_t>(left.max_bytes, 0))
        .with_hint(std::string(kMemoryHint));
  if (times == nullptr) return code.run(inputs, options);
  return code.run(inputs, timed(options, *times, unit, types_of(inputs)));
}

}  // namespace hone
