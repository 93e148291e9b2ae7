#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/sharding.h"
#include "tensor/type.h"

// A program of StableHLO or HLO as its text says it, before anything is checked: both readers make
// it, and one importer turns it into a Graph. Names of ops and attributes are those of StableHLO.
// All texts point into the source, which must live as long.

namespace hone::hlo {

// Stands in a type for a size that the text leaves open: '?'.
Dim open_dim();
inline bool is_open(Dim dim) { return !dim.is_static() && dim == open_dim(); }

// The type of a value.
struct ValueType {
  enum class Kind : uint8_t { tensor, token, tuple, foreign };
  Kind kind = Kind::foreign;
  Type type = {};                     // of a tensor; some dims may be open
  std::string_view text = {};         // as the file spells it
  std::string_view lack = {};         // foreign: what hone lacks: "complex numbers"
  std::vector<ValueType> parts = {};  // of a tuple
};

struct Attribute {
  enum class Kind : uint8_t {
    unit,     // a name without a value
    integer,  // 3, true (1), false (0)
    real,     // 0.5
    word,     // GT, "text", an enum such as #stablehlo<precision DEFAULT>
    symbol,   // @f
    list,     // [1, 2], array<i64: 1, 2>
    record,   // {a = 1}, #stablehlo.scatter<a = 1>
    literal,  // dense<...> : tensor<...>
  };
  Kind kind = Kind::unit;
  int64_t integer = 0;
  double real = 0;
  // A word without quotes, a symbol without @; of a literal what stands between its brackets.
  std::string_view text = {};
  std::vector<std::string_view> keys = {};  // of a record
  std::vector<Attribute> items = {};
  ValueType type = {};  // of a literal
  size_t offset = 0;
};

using AttributeList = std::vector<std::pair<std::string_view, Attribute>>;

struct Region;

struct Instruction {
  std::string_view name = {};  // "stablehlo.add"
  size_t offset = 0;
  std::vector<uint32_t> operands = {};  // values of the function
  uint32_t first_result = 0;
  std::vector<ValueType> results = {};
  AttributeList attributes = {};
  // The words of a pretty form that have no name, in order: GT, FLOAT.
  std::vector<std::string_view> words = {};
  std::vector<Region> regions;
  std::string_view label = {};  // a name for the result; "": none
};

// A list of instructions with parameters. A region sees the values of the regions around it.
struct Region {
  uint32_t first_parameter = 0;
  std::vector<ValueType> parameters = {};
  std::vector<std::string_view> names = {};  // of the parameters; "" if there is none
  std::vector<Instruction> instructions = {};
  std::vector<uint32_t> results = {};
  size_t offset = 0;
};

struct Function {
  std::string_view name;
  size_t offset = 0;
  bool is_private = false;
  uint32_t values = 0;  // are numbered from 0 to this, regions included
  std::vector<AttributeList> parameter_attributes = {};  // may be shorter than the parameters
  std::vector<ValueType> results;
  std::vector<std::string_view> result_names = {};    // "" for those without; may be shorter
  std::vector<AttributeList> result_attributes = {};  // none, or of each
  Region body;
};

// The devices that run a module: replicas, and partitions of each. Device r * partitions + p is
// partition p of replica r.
struct DeviceGrid {
  int64_t replicas = 1;
  int64_t partitions = 1;

  int64_t devices() const { return replicas * partitions; }
};

struct Module {
  std::string_view name;
  DeviceGrid grid = {};           // as the module states it
  std::string_view symbols = {};  // hone.symbols: what hone.dims of parameters speak of
  std::vector<MeshRef> meshes = {};
  std::deque<Function> functions;  // a deque: they stay where they are
  std::unordered_map<std::string_view, uint32_t> by_name;
  uint32_t entry = UINT32_MAX;  // the function that a file calls its entry; none: UINT32_MAX
};

// A text of one or more modules.
struct Program {
  std::string where;
  std::shared_ptr<const std::string> source;
  std::deque<std::string> made = {};  // names that the reader made up
  std::deque<Module> modules;

  std::string place(size_t offset) const;  // "f.mlir:3:7"
};

}  // namespace hone::hlo
