#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "prove/family.h"
#include "rules/exact.h"
#include "rules/numbers.h"

// All small terms over the ops of a family, one for each that computes something different.

namespace hone {

// The exact values of a term at each list of sizes, as one hash.
struct Fingerprint {
  uint64_t first = 0, second = 0;
  bool operator==(const Fingerprint&) const = default;
};

class TermTable {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  // 32 bytes: an op applied to terms, or an input or a constant.
  struct Term {
    Fingerprint print;
    uint16_t op = 0;  // a leaf's number comes behind those of the ops
    uint16_t type = 0;
    std::array<Id, 3> operands = {kNone, kNone, kNone};
  };
  static_assert(sizeof(Term) == 32);

  struct Limits {
    int max_ops = 3;
    size_t max_terms = size_t{100} << 20;  // that are parts; 32 bytes each, and 8 to find it
    // The memory for terms with max_ops ops, which are no parts: 32 bytes each, 40 where an op has
    // three operands. Terms that do not fit go to a file in the folder; empty: more are over the
    // limit.
    size_t memory = size_t{1} << 30;
    std::filesystem::path spill = {};
  };
  struct Counts {
    uint64_t made = 0;      // well-typed terms
    uint64_t distinct = 0;  // that computed something new
    uint64_t spilled = 0;   // bytes
  };
  // Gets each term that computes what another one does that was there before, in a fixed order.
  using Duplicate = std::function<Status(const Term& term, Id same)>;

  static Result<TermTable> make(const TermOps& ops, uint64_t seed);

  // Terms with 1, 2, ... up to max_ops ops; a part that a term uses twice counts once. Parts of
  // terms are distinct ones. Fails with `limit` if there are too many.
  Status enumerate(const Limits& limits, ThreadPool& pool, Progress& progress,
                   const CancelToken* cancel, const Duplicate& duplicate);

  const Counts& counts() const { return counts_; }
  const Term& operator[](Id id) const { return terms_[id]; }
  bool is_leaf(const Term& term) const { return term.op >= ops_.ops.size(); }
  size_t input_count() const { return ops_.inputs.size(); }
  const TermOps& ops() const { return ops_; }
  Type type(const Term& term) const { return types_[term.type]; }

 private:
  template <class Numbers, class Made>
  class Enumeration;
  struct ShortMade;
  struct LongMade;

  TermTable() = default;
  uint16_t type_id(Type type);
  // UINT16_MAX: ill-typed, or no operand.
  uint16_t result_type(uint16_t op, std::array<uint16_t, 3> operands);
  Id find(const Fingerprint& print) const;
  void insert(const Term& term);
  Status add(const Term& term, const Limits& limits, const Duplicate& duplicate);
  Result<Id> keep(const Term& term, const Limits& limits);
  void add_nodes(Id id, std::vector<Id>& nodes) const;
  int union_size(Id a, Id b) const;
  std::vector<Id> partners(Id x, int size_of_x, int ops) const;
  std::vector<std::pair<Id, Id>> pairs_with(Id x, int ops) const;

  TermOps ops_;
  uint64_t seed_ = 0;
  bool is_about_order_ = false;
  std::vector<Bindings> sizes_;
  std::vector<std::vector<Op>> static_ops_;  // [op][sizes]
  std::vector<Type> types_;
  std::vector<std::vector<Type>> static_types_;  // [type][sizes]
  std::unordered_map<uint64_t, uint16_t> result_types_;
  std::vector<Term> terms_;
  std::vector<Id> level_begin_;  // terms with n ops begin at [n]
  std::vector<Id> slots_;
  Counts counts_;
};

}  // namespace hone
