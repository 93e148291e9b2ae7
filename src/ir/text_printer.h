#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/text.h"

// Shared by the printers of graphs and of models.

namespace hone {

struct Sharding;

// Splats beyond this many bytes per text are written as data, so that a short text cannot make
// its reader allocate without bound.
inline constexpr int64_t kSplatBytesPerText = int64_t{64} << 20;
// Regions and model bodies inside of each other.
inline constexpr int kMaxTextDepth = 64;

// %name, quoted if it must be.
void append_label(std::string& out, char sigil, std::string_view name);

class TextPrinter {
 public:
  TextPrinter(std::string& out, const PrintOptions& options) : out_(out), options_(options) {}

  // "graph @mlp(...) -> ... {\n...}" at an indentation in blanks; no line break at the end.
  void graph(const Graph& graph, int indent);
  void type(Type type) { out_ += type_text(type); }
  void symbols(const std::vector<Symbol>& symbols);  // " where N in 1..64", or nothing
  // " [1, 2]"; a large one goes to the table of weights under a name like `wanted`.
  void constant(const Tensor& tensor, std::string_view wanted);

 private:
  const std::string& type_text(Type type);
  void parameter(const Graph& graph, size_t input);
  void signature(const Graph& graph, size_t parameters, int indent);
  void result_types(const Graph& graph);
  void body(const Graph& graph, size_t parameters, int indent);
  void node(const Graph& graph, NodeId n, int indent);
  void value(const Graph& graph, ValueId v);
  void values(const Graph& graph, std::span<const ValueId> list);
  void donation(const Graph& graph, size_t input);
  void meshes(const Graph& graph);
  void sharding(const Sharding& sharding);
  void shardings(const Graph& graph, ValueId v);
  bool as_splat(const Tensor& tensor);
  void regions(const Graph& graph, NodeId n, int indent);
  void line(int indent) { out_.append(1, '\n').append(static_cast<size_t>(indent), ' '); }

  struct HashByMember {
    template <class T>
    size_t operator()(const T& t) const {
      return static_cast<size_t>(t.hash());
    }
  };

  std::string& out_;
  const PrintOptions& options_;
  std::unordered_map<Type, std::string, HashByMember> types_;
  std::unordered_map<Op, std::string, HashByMember> attrs_;
  std::unordered_map<const Graph*, std::multimap<size_t, uint32_t>> donations_;
  int64_t splat_bytes_ = 0;  // written as one number so far
};

}  // namespace hone
