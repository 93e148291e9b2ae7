#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace hone {

// A type of which some sizes may be unknown because they depend on data. All of it is unknown, or
// open, if a deferred segment gives the value.
struct KnownType {
  DType dtype = DType::f32;
  Ints dims = {};        // -1: unknown
  bool is_open = false;  // nothing is known, neither element type nor rank

  static KnownType of(Type type);  // symbolic dims are unknown
  static KnownType open() { return {.is_open = true}; }
  bool can_be_scalar(DType wanted) const { return is_open || (dims.empty() && dtype == wanted); }
  bool can_be_count() const { return is_open || (dims.empty() && is_integer(dtype)); }
  std::optional<Type> exactly() const;  // if all is known
  std::string to_string() const;        // "f32[3, ?]"
  bool operator==(const KnownType&) const = default;
};

// Checks that the known type can be the wanted one, and adds the values of its symbols.
Status match_type(Type wanted, const KnownType& known, Bindings& bindings);

// The body of a deferred segment for inputs of these types, verified.
Result<Body> make_body(const DeferredSegment& segment, std::span<const Type> inputs);

// Follows the types of values from segment to segment before a model runs.
class ModelFlow {
 public:
  // If `specializes`, each graph is specialized for the sizes that are known.
  explicit ModelFlow(bool specializes) : specializes_(specializes) {}

  Status run(Model& model);
  // The same for the body of a deferred segment, for inputs of these types.
  Status run(const DeferredSegment& segment, std::span<const Type> inputs, Body& body);

 private:
  Status segments(std::vector<Segment>& list);
  Status segment(GraphSegment& segment);
  Status segment(IfSegment& segment);
  Status segment(LoopSegment& segment);
  Status segment(DeferredSegment& segment);
  // The body of a deferred segment, if it is to be put in its place.
  Result<std::optional<Body>> replacement(const DeferredSegment& segment);
  Status crops(const GraphSegment& segment, std::vector<KnownType>& outputs);
  // The types of the results. Forgets the names that the body defined.
  Result<std::vector<KnownType>> body(Body& body);
  Result<std::vector<KnownType>> loop_body(LoopSegment& segment,
                                           const std::vector<KnownType>& carried,
                                           const std::vector<KnownType>& grown);

  Status define(std::string_view name, KnownType type);
  Result<KnownType> read(std::string_view name) const;
  Result<std::vector<KnownType>> read_all(std::span<const std::string> names) const;
  Status read_flag(std::string_view name) const;
  void forget_since(size_t count);

  bool specializes_;
  int depth_ = 0;
  int loop_depth_ = 0;
  int replaced_ = 0;       // deferred segments
  bool has_open_ = false;  // types may be open
  std::unordered_map<std::string, KnownType> known_;
  std::vector<std::string> order_;  // the names of known_, as they came
};

}  // namespace hone
