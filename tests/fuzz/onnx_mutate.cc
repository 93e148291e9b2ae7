#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>

#include "base/progress.h"
#include "base/rng.h"
#include "front/onnx/onnx.h"
#include "ir/reference/evaluate_model.h"
#include "ir/summary.h"
#include "tests/fuzz/onnx_seeds.h"
#include "tests/fuzz/target.h"

// Models that are almost right: messages are changed where they mean something, so that most inputs
// get past the parser and into the mappings.

namespace hone::HONE_FILE {
namespace {

using fuzz::seed_model, fuzz::write_model;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kMaxMessages = 20'000;

constexpr int64_t kIntegers[] = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 16,
                                 17,
                                 255,
                                 -1,
                                 -2,
                                 -3,
                                 -128,
                                 4096,
                                 4097,
                                 65'537,
                                 int64_t{1} << 24,
                                 int64_t{1} << 31,
                                 -(int64_t{1} << 31),
                                 int64_t{1} << 32,
                                 int64_t{1} << 40,
                                 int64_t{1} << 62,
                                 -(int64_t{1} << 62),
                                 INT64_MAX,
                                 INT64_MIN};
constexpr double kReals[] = {0,    -0.0, 1,     -1,       0.5,       2,  1e9,
                             -1e9, 1e30, 1e-40, INFINITY, -INFINITY, NAN};
constexpr const char* kAttributes[] = {"axis",
                                       "axes",
                                       "perm",
                                       "pads",
                                       "strides",
                                       "dilations",
                                       "kernel_shape",
                                       "group",
                                       "auto_pad",
                                       "ceil_mode",
                                       "output_padding",
                                       "output_shape",
                                       "alpha",
                                       "beta",
                                       "epsilon",
                                       "keepdims",
                                       "to",
                                       "value",
                                       "value_int",
                                       "value_ints",
                                       "value_floats",
                                       "value_float",
                                       "transA",
                                       "transB",
                                       "mode",
                                       "num_outputs",
                                       "split",
                                       "blocksize",
                                       "k",
                                       "largest",
                                       "sorted",
                                       "batch_dims",
                                       "reduction",
                                       "equation",
                                       "hidden_size",
                                       "direction",
                                       "layout",
                                       "num_groups",
                                       "block_size",
                                       "allowzero",
                                       "start",
                                       "end",
                                       "depth",
                                       "dtype",
                                       "seed",
                                       "body",
                                       "then_branch",
                                       "else_branch",
                                       "upper",
                                       "exclusive",
                                       "reverse",
                                       "count_include_pad",
                                       "storage_order",
                                       "num_scan_inputs",
                                       "num_heads",
                                       "kv_num_heads",
                                       "scale",
                                       "bits",
                                       "N",
                                       "K",
                                       "scan_input_axes",
                                       "coordinate_transformation_mode",
                                       "nodes_treeids",
                                       "nodes_nodeids",
                                       "nodes_featureids",
                                       "nodes_truenodeids",
                                       "nodes_falsenodeids",
                                       "nodes_trueleafs",
                                       "nodes_falseleafs",
                                       "tree_roots",
                                       "target_nodeids",
                                       "target_ids",
                                       "leaf_targetids",
                                       "n_targets",
                                       "aggregate_function",
                                       "post_transform",
                                       "classlabels_ints",
                                       "classlabels_int64s",
                                       "keys_int64s",
                                       "values_int64s",
                                       "new_axis"};
constexpr const char* kWords[] = {
    "",      "SAME_UPPER",    "VALID",         "constant",      "reflect",
    "edge",  "wrap",          "ij,jk->ik",     "...i->i",       "linear",
    "cubic", "nearest",       "align_corners", "add",           "mul",
    "own",   "com.microsoft", "ai.onnx",       "bidirectional", "\x80"};

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, uint64_t seed) : model_(model), rng_(seed) {}

  void mutate() {
    for (uint64_t steps = 1 + rng_.below(4); steps > 0; --steps) step();
  }

  // A part of `other` in the place of one of the same kind.
  void cross(onnx::ModelProto& other) {
    collect(model_);
    std::vector<Message*> mine = std::move(messages_);
    messages_.clear();
    collect(other);
    std::vector<Message*> theirs = std::move(messages_);
    for (int attempt = 0; attempt < 16 && !mine.empty() && !theirs.empty(); ++attempt) {
      Message *to = rng_.pick(mine), *from = rng_.pick(theirs);
      if (to->GetDescriptor() != from->GetDescriptor() || to == &model_) continue;
      to->CopyFrom(*from);
      return;
    }
  }

 private:
  void step() {
    collect_all();
    switch (rng_.below(9)) {
      case 0: return rename_op();
      case 1: return rewire();
      case 2: return add_node();
      case 3: return add_attribute();
      case 4: return change_opset();
      default: return change_field(*rng_.pick(messages_));
    }
  }

  void collect_all() {
    messages_.clear();
    collect(model_);
  }

  // All messages within, in any order.
  void collect(Message& root) {
    messages_.push_back(&root);
    for (size_t i = messages_.size() - 1; i < messages_.size(); ++i) {
      if (messages_.size() > kMaxMessages) return;
      Message& message = *messages_[i];
      const Reflection& reflection = *message.GetReflection();
      std::vector<const FieldDescriptor*> fields;
      reflection.ListFields(message, &fields);
      for (const FieldDescriptor* field : fields) {
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
        if (!field->is_repeated()) {
          messages_.push_back(reflection.MutableMessage(&message, field));
          continue;
        }
        for (int k = 0; k < reflection.FieldSize(message, field); ++k)
          messages_.push_back(reflection.MutableRepeatedMessage(&message, field, k));
      }
    }
  }

  template <class T>
  std::vector<T*> all() {
    std::vector<T*> found;
    for (Message* message : messages_)
      if (message->GetDescriptor() == T::descriptor()) found.push_back(static_cast<T*>(message));
    return found;
  }

  std::string value_name() {
    std::vector<onnx::NodeProto*> nodes = all<onnx::NodeProto>();
    std::vector<onnx::GraphProto*> graphs = all<onnx::GraphProto>();
    if (!nodes.empty() && rng_.chance(0.6)) {
      const onnx::NodeProto& node = *rng_.pick(nodes);
      const auto& names = rng_.chance(0.3) ? node.input() : node.output();
      if (!names.empty()) return names[index(names.size())];
    }
    if (graphs.empty()) return "x";
    const onnx::GraphProto& graph = *rng_.pick(graphs);
    if (graph.initializer_size() > 0 && rng_.chance(0.5))
      return graph.initializer(index(graph.initializer_size())).name();
    return graph.input_size() > 0 ? graph.input(index(graph.input_size())).name() : "x";
  }

  int index(int size) { return static_cast<int>(rng_.below(static_cast<uint64_t>(size))); }

  void name_op(onnx::NodeProto& node) {
    const OnnxOp& op = rng_.pick(ops_);
    node.set_op_type(std::string(op.name));
    node.set_domain(std::string(op.domain));
    bool has_domain = op.domain.empty();
    for (const auto& import : model_.opset_import()) has_domain |= import.domain() == op.domain;
    if (has_domain) return;
    onnx::OperatorSetIdProto& import = *model_.add_opset_import();
    import.set_domain(std::string(op.domain));
    import.set_version(op.domain == "ai.onnx.ml" ? rng_.between(1, 5) : 1);
  }

  // The meaning of a file depends on it: mostly one that import knows.
  void change_opset() {
    if (model_.opset_import_size() == 0) return;
    onnx::OperatorSetIdProto& import =
        *model_.mutable_opset_import(index(model_.opset_import_size()));
    import.set_version(rng_.between(1, import.domain().empty() ? 28 : 6));
  }

  void rename_op() {
    std::vector<onnx::NodeProto*> nodes = all<onnx::NodeProto>();
    if (!nodes.empty()) name_op(*rng_.pick(nodes));
  }

  void rewire() {
    std::vector<onnx::NodeProto*> nodes = all<onnx::NodeProto>();
    if (nodes.empty()) return;
    onnx::NodeProto& node = *rng_.pick(nodes);
    if (node.input_size() == 0 || rng_.chance(0.2)) node.add_input("");
    node.set_input(index(node.input_size()), rng_.chance(0.1) ? "" : value_name());
  }

  // Reads what others give, and is an output, so that it is not dead.
  void add_node() {
    std::vector<onnx::GraphProto*> graphs = all<onnx::GraphProto>();
    if (graphs.empty()) return;
    onnx::GraphProto& graph = *rng_.pick(graphs);
    onnx::NodeProto node;
    name_op(node);
    for (uint64_t i = 1 + rng_.below(4); i > 0; --i) node.add_input(value_name());
    std::string name = "v" + std::to_string(rng_.below(1000));
    node.add_output(name);
    *graph.add_node() = node;
    if (rng_.chance(0.7)) graph.add_output()->set_name(name);
    int last = graph.node_size() - 1;
    if (rng_.chance(0.3)) graph.mutable_node()->SwapElements(index(last + 1), last);
  }

  void add_attribute() {
    std::vector<onnx::NodeProto*> nodes = all<onnx::NodeProto>();
    std::vector<onnx::AttributeProto*> others = all<onnx::AttributeProto>();
    if (nodes.empty()) return;
    onnx::AttributeProto attribute;
    if (!others.empty() && rng_.chance(0.3)) {
      attribute = *rng_.pick(others);
    } else {
      attribute.set_name(rng_.pick(kAttributes));
      if (rng_.chance(0.5)) {
        attribute.set_type(onnx::AttributeProto::INT);
        attribute.set_i(integer());
      } else if (rng_.chance(0.7)) {
        attribute.set_type(onnx::AttributeProto::INTS);
        for (uint64_t i = rng_.below(5); i > 0; --i) attribute.add_ints(integer());
      } else {
        attribute.set_type(onnx::AttributeProto::STRING);
        attribute.set_s(rng_.pick(kWords));
      }
    }
    *rng_.pick(nodes)->add_attribute() = attribute;
  }

  int64_t integer() { return rng_.chance(0.5) ? rng_.between(-4, 8) : rng_.pick(kIntegers); }

  void change_field(Message& message) {
    const auto& descriptor = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    const FieldDescriptor* field = !fields.empty() && rng_.chance(0.8)
                                       ? rng_.pick(fields)
                                       : descriptor.field(index(descriptor.field_count()));
    if (rng_.chance(0.05)) return reflection.ClearField(&message, field);
    if (!field->is_repeated()) return set(message, field, std::nullopt);
    int size = reflection.FieldSize(message, field);
    if (size > 1 && rng_.chance(0.15))
      return reflection.SwapElements(&message, field, index(size), index(size));
    if (size > 0 && rng_.chance(0.15)) {
      reflection.SwapElements(&message, field, index(size), size - 1);
      return reflection.RemoveLast(&message, field);
    }
    if (size > 0 && rng_.chance(0.7)) return set(message, field, index(size));
    add(message, field);
  }

  void add(Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64: return reflection.AddInt64(&message, field, integer());
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.AddInt32(&message, field, static_cast<int32_t>(integer()));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.AddUInt64(&message, field, static_cast<uint64_t>(integer()));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.AddFloat(&message, field, static_cast<float>(rng_.pick(kReals)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.AddDouble(&message, field, rng_.pick(kReals));
      case FieldDescriptor::CPPTYPE_STRING: return reflection.AddString(&message, field, text());
      case FieldDescriptor::CPPTYPE_MESSAGE: return fill(*reflection.AddMessage(&message, field));
      default: return;
    }
  }

  // The one of a repeated field at `at`.
  void set(Message& message, const FieldDescriptor* field, std::optional<int> at) {
    const Reflection& r = *message.GetReflection();
    Message* m = &message;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return at ? r.SetRepeatedInt64(m, field, *at, integer()) : r.SetInt64(m, field, integer());
      case FieldDescriptor::CPPTYPE_INT32: {
        // Element types, mostly.
        auto value = static_cast<int32_t>(rng_.chance(0.7) ? rng_.between(0, 27) : integer());
        return at ? r.SetRepeatedInt32(m, field, *at, value) : r.SetInt32(m, field, value);
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        auto value = static_cast<uint64_t>(integer());
        return at ? r.SetRepeatedUInt64(m, field, *at, value) : r.SetUInt64(m, field, value);
      }
      case FieldDescriptor::CPPTYPE_FLOAT: {
        auto value = static_cast<float>(rng_.pick(kReals));
        return at ? r.SetRepeatedFloat(m, field, *at, value) : r.SetFloat(m, field, value);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double value = rng_.pick(kReals);
        return at ? r.SetRepeatedDouble(m, field, *at, value) : r.SetDouble(m, field, value);
      }
      case FieldDescriptor::CPPTYPE_ENUM:
        if (!at) r.SetEnumValue(m, field, static_cast<int>(rng_.between(0, 16)));
        return;
      case FieldDescriptor::CPPTYPE_STRING:
        return at ? r.SetRepeatedString(m, field, *at, text()) : r.SetString(m, field, text());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return fill(*(at ? r.MutableRepeatedMessage(m, field, *at) : r.MutableMessage(m, field)));
      default: return;
    }
  }

  std::string text() {
    switch (rng_.below(5)) {
      case 0: return rng_.pick(kAttributes);
      case 1: return rng_.pick(kWords);
      case 2: return std::string(rng_.pick(ops_).name);
      default: return value_name();
    }
  }

  // Makes it like another one of its kind, which may be the one around it: graphs nest.
  void fill(Message& message) {
    collect_all();  // to set one of several fields may have cleared another
    std::vector<Message*> same;
    for (Message* other : messages_)
      if (other != &message && other->GetDescriptor() == message.GetDescriptor())
        same.push_back(other);
    if (same.empty() || rng_.chance(0.1)) return message.Clear();
    std::unique_ptr<Message> copy(message.New());
    copy->CopyFrom(*rng_.pick(same));
    message.CopyFrom(*copy);
  }

  onnx::ModelProto& model_;
  Rng rng_;
  std::span<const OnnxOp> ops_ = onnx_ops();
  std::vector<Message*> messages_;
};

// Now and then a seed, since what was changed often seldom gets as far as a run.
onnx::ModelProto parsed_or_seed(const uint8_t* data, size_t size, uint64_t seed) {
  constexpr uint64_t kSeedOnceIn = 8;
  onnx::ModelProto model;
  bool is_model = seed % kSeedOnceIn != 0 && model.ParseFromArray(data, static_cast<int>(size)) &&
                  model.has_graph();
  return is_model ? model : seed_model(seed / kSeedOnceIn);
}

// Stops an evaluation: loops run as often as the data says, and nest.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds time)
      : thread_([this, time](std::stop_token stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any done;
          done.wait_for(lock, stop, time, [] { return false; });
          token_.cancel();
        }) {}
  const CancelToken& token() const { return token_; }

 private:
  CancelToken token_;
  std::jthread thread_;
};

bool is_light(const Model& model) {
  constexpr double kMaxFlops = 1e6;
  constexpr int64_t kMaxElements = 1 << 18, kMaxNodes = 500;
  for (const Graph* graph : graphs_of(model)) {
    Result<GraphSummary> summary = summarize(*graph);
    if (!summary.ok() || summary->flops > kMaxFlops || summary->nodes > kMaxNodes ||
        summary->peak_elements > kMaxElements)
      return false;
  }
  return true;
}

Tensor small_numbers(Type type) {
  std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i % 3);
  if (!is_real(type.dtype())) return Tensor::from_integers(type, numbers);
  return Tensor::from_reals(type, std::vector<double>(numbers.begin(), numbers.end()));
}

// The part that is left for the run is reached, too: segments that are imported when their sizes
// are there.
void run_if_light(const Model& model) {
  constexpr int64_t kSize = 2, kMaxInputBytes = 1 << 16;
  Bindings bindings;
  for (const ModelValue& input : model.inputs)
    for (Dim dim : input.type.dims())
      for (Symbol symbol : dim.symbols())
        bindings.emplace(symbol.name(), std::clamp(kSize, symbol.min(), symbol.max()));
  std::vector<Tensor> inputs;
  for (const ModelValue& input : model.inputs) {
    Result<Type> type = input.type.bind(bindings);
    if (!type.ok() || type->static_bytes() > kMaxInputBytes) return;
    inputs.push_back(small_numbers(*type));
  }
  Result<Model> bound = specialize(model, bindings);
  if (!bound.ok() || !is_light(*bound)) return;
  Deadline deadline(std::chrono::milliseconds(300));
  (void)evaluate_model(*bound, inputs,
                       {.max_bytes = 1 << 22, .max_iterations = 20, .cancel = &deadline.token()});
}

size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  onnx::ModelProto model = parsed_or_seed(data, size, seed);
  Mutator(model, seed).mutate();
  const size_t written = write_model(model, data, max_size);
  return written > 0 ? written : write_model(seed_model(seed), data, max_size);
}

size_t cross(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2, uint8_t* out,
             size_t max_size, unsigned int seed) {
  onnx::ModelProto model = parsed_or_seed(data1, size1, seed);
  onnx::ModelProto other = parsed_or_seed(data2, size2, seed + 1);
  Mutator(model, seed).cross(other);
  return write_model(model, out, max_size);
}

}  // namespace

// Every model is an error, or one that verifies (the import checks that itself) and runs.
HONE_FUZZ(onnx_mutate, mutate, cross) {
  hone::ImportOptions options;
  options.limits.nodes = 5000;
  options.limits.tensor_bytes = int64_t{1} << 28;
  hone::Result<hone::Model> model =
      hone::parse_onnx(std::as_bytes(std::span(data, size)), "fuzz", "/nowhere", options);
  if (model.ok()) run_if_light(*model);
}

}  // namespace hone::HONE_FILE
