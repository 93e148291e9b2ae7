#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

// Builds graphs in code that reads like the formula.
//
//   Builder b("mlp");
//   Value x = b.parameter("x", DType::f32, {Symbol::get("N", 1, 64), 784});
//   Value h = relu(matmul(x, w) + bias);
//   Graph g = HONE_TRY(b.finish({h}));
//
// The first error sticks: later calls do nothing and finish() returns it, with the op's place.
// Functions on Values that are no single op are in functional.h.

namespace hone {

class Builder;

// A result of a Builder's graph. Absent operands are default-constructed Values.
class Value {
 public:
  Value() = default;
  Value(Builder* builder, ValueId id) : builder_(builder), id_(id) {}

  explicit operator bool() const { return builder_ != nullptr; }
  Builder& builder() const { return *builder_; }
  ValueId id() const { return id_; }
  // After an error every value has type f32[].
  Type type() const;
  DType dtype() const { return type().dtype(); }
  int rank() const { return type().rank(); }
  Dim dim(int axis) const;  // negative counts from the back
  Dims dims() const;
  // Gives the value its name in the graph.
  Value named(std::string_view name) const;

 private:
  Builder* builder_ = nullptr;
  ValueId id_;
};

class Builder {
 public:
  explicit Builder(std::string_view name = "main") : graph_(std::string(name)) {}
  Builder(const Builder&) = delete;

  Value parameter(std::string_view name, Type type);
  Value parameter(std::string_view name, DType dtype, const Dims& dims);
  Value constant(Tensor value, std::string_view name = "");
  Value scalar(DType dtype, double value);  // a rank-0 constant
  Value full(DType dtype, const Dims& dims, double value);

  // The single result of an op, or all of them.
  Value op(Opcode opcode, std::span<const Value> operands, Attrs attrs = {});
  Value op(Opcode opcode, std::initializer_list<Value> operands, Attrs attrs = {}) {
    return op(opcode, std::span<const Value>(operands.begin(), operands.size()), std::move(attrs));
  }
  std::vector<Value> ops(Opcode opcode, std::span<const Value> operands, Attrs attrs = {},
                         std::vector<GraphRef> regions = {});
  std::vector<Value> ops(Op op, std::span<const Value> operands,
                         std::vector<GraphRef> regions = {});

  // A region: a graph of its own with parameters of the given types.
  using Body = std::function<std::vector<Value>(Builder&, std::span<const Value>)>;
  GraphRef region(std::string_view name, std::span<const Type> parameters, const Body& body);

  // Inlines `graph`, its parameters replaced by `arguments`.
  std::vector<Value> inlined(const Graph& graph, std::span<const Value> arguments);

  void donate(Value input, int output);
  // The shardings of values that there are (sharding.h).
  void set_shardings(std::shared_ptr<const Shardings> shardings) {
    graph_.set_shardings(std::move(shardings));
  }
  // Names inside get this prefix: "layer3/"; nests.
  class Scope;
  [[nodiscard]] Scope scope(std::string_view name);
  std::string_view prefix() const { return prefix_; }

  // The first error, if there was one.
  bool ok() const { return error_.ok(); }
  const Status& status() const { return error_; }
  void fail(Error error);
  // Continues after an error that the caller has handled. The failed calls added nothing.
  void forgive() { error_ = {}; }
  // Called with the first error: a front end that throws can leave the code that was building.
  void on_failure(std::function<void(const Error&)> handler) { on_failure_ = std::move(handler); }

  Result<Graph> finish(std::span<const Value> outputs);
  Result<Graph> finish(std::initializer_list<Value> outputs) {
    return finish(std::span<const Value>(outputs.begin(), outputs.size()));
  }
  const Graph& graph() const { return graph_; }

 private:
  friend class Value;
  Value poison();
  std::string scoped(std::string_view name) const;

  Graph graph_;
  Status error_;
  std::string prefix_;
  std::vector<std::pair<Value, int>> donations_;
  std::function<void(const Error&)> on_failure_;
};

class Builder::Scope {
 public:
  Scope(Builder& builder, std::string_view name);
  Scope(const Scope&) = delete;
  ~Scope() { builder_.prefix_.resize(size_); }

 private:
  Builder& builder_;
  size_t size_;
};

}  // namespace hone
