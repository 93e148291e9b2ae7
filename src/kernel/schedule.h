#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace hone {

// How a kernel is carried out: a row of algorithms.def each.
enum class Algorithm : uint8_t {
#define HONE_ALGORITHM(member, ...) member,
#include "kernel/algorithms.def"
};
std::string_view name(Algorithm algorithm);
inline constexpr Algorithm kAlgorithms[] = {
#define HONE_ALGORITHM(member, ...) Algorithm::member,
#include "kernel/algorithms.def"
};

// How an operand gets into scratch before a block of a gemm.
enum class Packing : uint8_t {
#define HONE_PACKING(member, doc) member,
#include "kernel/algorithms.def"
};
std::string_view name(Packing packing);

// How a gemm multiplies numbers.
enum class Products : uint8_t {
#define HONE_PRODUCTS(member, doc) member,
#include "kernel/algorithms.def"
};
std::string_view name(Products products);

// `count` points of a dim that are taken together.
struct Tile {
  int dim = 0;
  int64_t count = 1;
  bool operator==(const Tile&) const = default;
};

// ---- What each algorithm adds to a schedule: NestFields, GemmFields, ... ------------------------

struct Schedule;

#define HONE_FIELD(type, member, initial, ...) type member initial;
#define HONE_ALGORITHM(algorithm, Fields, doc, fields) \
  struct Fields {                                      \
    fields bool operator==(const Fields&) const;       \
  };
#include "kernel/algorithms.def"

template <class Nothing, class... Fields>
struct VariantOf {
  using type = std::variant<Fields...>;
};
using AlgorithmFields = VariantOf<void
#define HONE_ALGORITHM(member, Fields, ...) , Fields
#include "kernel/algorithms.def"
                                  >::type;

// Dims are numbered as in the kernel's space (space_of): first the dims of the results, then those
// of the anchor's reduction. Where a count does not divide its dim, the last tile is smaller.
// A product in register tiles of 14 x 32: {.order = {0, 1}, .lanes = {{1, 32}}, .unroll = {{0,
// 14}}, .own = GemmFields{.block = {{0, 28}}}}.
struct Schedule {
  std::vector<int> order = {};    // the dims of the results, from outside in
  int threads = 0;                // how many of the outermost loops threads divide
  std::vector<Tile> lanes = {};   // at most one: side by side in vector lanes
  std::vector<Tile> unroll = {};  // side by side in registers
  AlgorithmFields own = {};       // the algorithm, and what it adds
  static constexpr size_t kMaxStages = 64;

  Algorithm algorithm() const { return static_cast<Algorithm>(own.index()); }
  // Null: the schedule is of another algorithm.
  template <class Fields>
  const Fields* if_is() const {
    return std::get_if<Fields>(&own);
  }
  template <class Fields>
  Fields* if_is() {
    return std::get_if<Fields>(&own);
  }
  template <class Fields>
  Fields& get() {
    return std::get<Fields>(own);
  }
  template <class Fields>
  const Fields& get() const {
    return std::get<Fields>(own);
  }

  bool operator==(const Schedule&) const = default;
};

#define HONE_ALGORITHM(member, Fields, ...) \
  inline bool Fields::operator==(const Fields&) const = default;
#include "kernel/algorithms.def"

// The default fields of an algorithm.
AlgorithmFields fields_of(Algorithm algorithm);

// Calls f(name, field) for each field that the algorithm adds, in the order of its text.
template <class AnySchedule, class F>
void each_own_field(AnySchedule& schedule, const F& f) {
  switch (schedule.algorithm()) {
#define HONE_FIELD(type, member, ...) f(std::string_view(#member), own.member);
#define HONE_ALGORITHM(algorithm, Fields, doc, fields)            \
  case Algorithm::algorithm: {                                    \
    [[maybe_unused]] auto& own = schedule.template get<Fields>(); \
    fields break;                                                 \
  }
#include "kernel/algorithms.def"
  }
}

// The same for all fields that the schedule has.
template <class AnySchedule, class F>
void each_field(AnySchedule& schedule, const F& f) {
#define HONE_SHARED_FIELD(member, ...) f(std::string_view(#member), schedule.member);
#include "kernel/algorithms.def"
  each_own_field(schedule, f);
}

// The simplest nest of results of this rank: one point after another, in order.
inline Schedule plain_nest(int rank) {
  Schedule nest = {.own = NestFields()};
  for (int dim = 0; dim < rank; ++dim) nest.order.push_back(dim);
  return nest;
}

}  // namespace hone
