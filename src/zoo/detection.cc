#include <array>

#include "zoo/models.h"

// YOLOv3 (Redmon and Farhadi 2018) with its decoding of boxes and non-maximum suppression.

namespace hone::zoo {
namespace {

Value leaky(Value x) { return maximum(x, x * 0.1); }

Value unit(Net& net, std::string_view name, Value x, int64_t channels, int64_t kernel,
           int64_t stride = 1, double gain = 1) {
  return leaky(conv_bn(net, name, x, net.width(channels), {.kernel = {kernel}, .stride = stride},
                       {.gain = gain}));
}

// Darknet-53: the features at strides 8, 16 and 32.
std::array<Value, 3> backbone(Net& net, Value x) {
  constexpr std::array<int64_t, 5> kBlocks = {1, 2, 8, 8, 4};
  Builder::Scope scope = net.scope("backbone");
  std::array<Value, 3> features;
  x = unit(net, "stem", x, 32, 3);
  for (size_t stage = 0; stage < kBlocks.size(); ++stage) {
    int64_t channels = int64_t{64} << stage;
    x = unit(net, fmt::format("down/{}", stage), x, channels, 3, 2);
    for (int64_t i = 0; i < net.blocks(kBlocks[stage]); ++i) {
      Builder::Scope block = net.scope(fmt::format("stage{}", stage), i);
      Value y = unit(net, "1", x, channels / 2, 1);
      x = x + unit(net, "2", y, channels, 3, 1, 0.1);
    }
    if (stage >= 2) features[stage - 2] = x;
  }
  return features;
}

// Five alternating convolutions; the result feeds both this scale's head and the next scale.
Value neck(Net& net, Value x, int64_t channels) {
  for (int64_t i = 1; i <= 5; ++i)
    x = unit(net, fmt::format("{}", i), x, i % 2 == 1 ? channels : channels * 2,
             i % 2 == 1 ? 1 : 3);
  return x;
}

Value upsample(Value x) {
  Dims sizes = x.dims();
  if (!x.builder().ok()) return x;
  sizes[2] = sizes[2] * 2;
  sizes[3] = sizes[3] * 2;
  return x.builder().op(Opcode::resize, {x}, {{"sizes", sizes}});
}

struct Scale {
  int64_t stride;                 // pixels per cell
  std::array<double, 6> anchors;  // width and height of three boxes, in pixels
};
constexpr std::array<Scale, 3> kScales = {{{8, {10, 13, 16, 30, 33, 23}},
                                           {16, {30, 61, 62, 45, 59, 119}},
                                           {32, {116, 90, 156, 198, 373, 326}}}};

// [n, 3 * (5 + classes), h, w] -> [n, 3 * h * w, 5 + classes]: corners in pixels, objectness,
// class probabilities.
Value decode(Net& net, Value raw, const Scale& scale) {
  if (!net.b.ok()) return raw;
  Dim h = raw.dim(2), w = raw.dim(3);
  Value x = transpose(reshape(raw, {net.batch, 3, -1, h, w}), {0, 1, 3, 4, 2});
  double stride = static_cast<double>(scale.stride);
  std::vector<Value> parts = split(x, 4, Dims{1, 1, 2, x.dim(4) - 4});
  Value column = iota(net.b, DType::f32, {h, w, 1}, 1), row = iota(net.b, DType::f32, {h, w, 1}, 0);
  Value center =
      concat({(logistic(parts[0]) + column) * stride, (logistic(parts[1]) + row) * stride}, 4);
  Type anchor_type = Type::get(DType::f32, {3, 1, 1, 2});
  Value anchors = net.b.constant(Tensor::from_reals(anchor_type, scale.anchors), "anchors");
  Value half = exp(minimum(parts[2], 4)) * anchors / 2;
  Value boxes = concat({center - half, center + half, logistic(parts[3])}, 4);
  return reshape(boxes, {net.batch, h * w * 3, -1});
}

// ---- Non-maximum suppression --------------------------------------------------------------------

// Row index[i] of each example: x [n, m, d], index [n, k] -> [n, k, d].
Value take_rows(Value x, Value index) {
  return x.builder().op(Opcode::gather, {x, index},
                        {{"offset_dims", Ints{2}},
                         {"collapsed_dims", Ints{1}},
                         {"operand_batch_dims", Ints{0}},
                         {"index_batch_dims", Ints{0}},
                         {"index_map", Ints{1}},
                         {"index_vector_dim", int64_t{2}},
                         {"sizes", Dims{1, 1, x.dim(2)}}});
}

// Intersection over union of one box [n, 1, 4] with many [n, m, 4]: [n, m].
Value overlap(Value box, Value boxes) {
  auto area = [](Value corners) {
    std::vector<Value> ends = split(corners, 2, 2);
    Value size = maximum(ends[1] - ends[0], 0);
    return reduce("product", size, {2});
  };
  std::vector<Value> a = split(box, 2, 2), b = split(boxes, 2, 2);
  Value shared = area(concat({maximum(a[0], b[0]), minimum(a[1], b[1])}, 2));
  return shared / (area(box) + area(boxes) - shared + 1e-9);
}

// The values that the loop carries; the last two never change (a region sees its parameters alone).
struct Suppression {
  enum Index { step, alive, kept_boxes, kept_scores, kept_classes, count, boxes, classes, size };
};

// Keeps the best box that is alive in each example and drops those of its class that overlap it.
std::vector<Value> keep_best(std::span<const Value> state) {
  constexpr double kMaxOverlap = 0.5;
  using S = Suppression;
  Builder& b = state[S::step].builder();
  Value alive = state[S::alive];
  Value best = argmax(alive, 1, true);                                        // [n, 1]
  Value score = reduce_max(alive, {1}, true);                                 // [n, 1]
  Value box = take_rows(state[S::boxes], best);                               // [n, 1, 4]
  Value kind = squeeze(take_rows(unsqueeze(state[S::classes], 2), best), 2);  // [n, 1]
  Value found = compare("gt", score, 0);

  Value similar = binary(Opcode::and_, compare("eq", state[S::classes], kind),
                         compare("gt", overlap(box, state[S::boxes]), kMaxOverlap));
  Value itself = compare("eq", iota(b, DType::i64, alive.dims(), 1), best);
  Value dropped = binary(Opcode::or_, similar, itself);

  Value zero = b.scalar(DType::i64, 0);
  auto record = [&](S::Index list, Value row) {
    std::vector<Value> operands = {state[list], row, zero, state[S::step]};
    if (row.rank() == 3) operands.push_back(zero);
    return b.op(Opcode::dynamic_update, operands);
  };
  std::vector<Value> next(state.begin(), state.end());
  next[S::step] = state[S::step] + 1;
  next[S::alive] = select(dropped, b.scalar(DType::f32, 0), alive);
  Value none = b.scalar(DType::f32, 0);
  next[S::kept_boxes] = record(S::kept_boxes, select(unsqueeze(found, 2), box, none));
  next[S::kept_scores] = record(S::kept_scores, score);
  next[S::kept_classes] = record(S::kept_classes, select(found, kind, b.scalar(DType::i64, -1)));
  next[S::count] = state[S::count] + squeeze(cast(found, DType::i64), 1);
  return next;
}

// detections: [n, m, 5 + classes]. At most `limit` boxes per example, the best first, and how many.
Outputs suppress(Net& net, Value detections, int64_t candidates, int64_t limit) {
  constexpr double kMinScore = 0.25;
  using S = Suppression;
  std::vector<Value> parts =
      split(detections, 2, Dims{4, 1, detections.dim(2) - 5});  // corners, objectness, classes
  Value score = squeeze(parts[1], 2) * reduce_max(parts[2], {2});
  std::vector<Value> best = net.b.ops(Opcode::top_k, std::vector{score}, {{"k", Dims{candidates}}});
  Value kinds = unsqueeze(argmax(parts[2], 2), 2);

  std::vector<Value> state(S::size);
  state[S::step] = net.b.scalar(DType::i64, 0);
  state[S::alive] = select(compare("gt", best[0], kMinScore), best[0], net.b.scalar(DType::f32, 0));
  state[S::kept_boxes] = net.b.full(DType::f32, {net.batch, limit, 4}, 0);
  state[S::kept_scores] = net.b.full(DType::f32, {net.batch, limit}, 0);
  state[S::kept_classes] = net.b.full(DType::i64, {net.batch, limit}, -1);
  state[S::count] = net.b.full(DType::i64, {net.batch}, 0);
  state[S::boxes] = take_rows(parts[0], best[1]);
  state[S::classes] = squeeze(take_rows(kinds, best[1]), 2);

  auto more = [limit](Builder&, std::span<const Value> s) -> std::vector<Value> {
    Value left = compare("gt", reduce_max(s[S::alive], {0, 1}), 0);
    return {binary(Opcode::and_, left, compare("lt", s[S::step], static_cast<double>(limit)))};
  };
  auto body = [](Builder&, std::span<const Value> s) { return keep_best(s); };
  std::vector<Value> last = while_loop(state, more, body);
  return {last[S::kept_boxes].named("boxes"), last[S::kept_scores].named("scores"),
          last[S::kept_classes].named("classes"), last[S::count].named("count")};
}

}  // namespace

Outputs yolo_v3(Net& net) {
  int64_t classes = net.pick(80, 4);
  std::array<Value, 3> features = backbone(net, net.images());
  std::vector<Value> detections;
  Value carried;
  for (int64_t i = 2; i >= 0; --i) {  // from coarse to fine
    Builder::Scope scope = net.scope("scale", i);
    int64_t channels = int64_t{128} << i;
    Value x = features[static_cast<size_t>(i)];
    if (carried) x = concat({upsample(unit(net, "up", carried, channels, 1)), x}, 1);
    carried = neck(net, x, channels);
    Value head = unit(net, "head/1", carried, channels * 2, 3);
    head = conv(net, "head/2", head, 3 * (5 + classes), {.kernel = {1}, .bias = true, .gain = 0.3});
    detections.push_back(decode(net, head, kScales[static_cast<size_t>(i)]));
  }
  Value all = concat(detections, 1).named("detections");
  Outputs outputs = suppress(net, all, net.pick(512, 32), net.pick(100, 28));
  outputs.push_back(all);
  return outputs;
}

}  // namespace hone::zoo
