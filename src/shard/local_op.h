#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/op_def.h"
#include "shard/batch_part.h"

// The form of an op for fewer rows.

namespace hone {

// An entry of an attribute that says the size of a dim, and what it is for a share of the rows.
struct SizeEntry {
  size_t attr;
  size_t entry;
  Dim local;
};

// For operands and results of these types, which have rows along these dims.
std::vector<SizeEntry> size_entries(Op op, std::span<const Type> types, std::span<const int> dims,
                                    const BatchShare& share);

// The op has an attribute of this name.
bool has_attr(Op op, std::string_view name);

// Adds the entries that say the size of this dim of a value.
void add_size_entries(Op op, size_t dim, Dim whole, Dim local, std::vector<SizeEntry>& entries);

// The op for local operands that gives these results: some of its sizes are those of the batch.
std::optional<Op> local_op(const Application& local, std::span<const SizeEntry> entries,
                           std::span<const Type> wanted);

// The type in which parts of a sum are added up. Rounded once, as on one device. Types that are for
// storage alone cannot be added up.
DType sum_type(DType dtype);

// An op that adds up, and the operands that it takes; absent: null.
struct SumForm {
  Op op;
  std::vector<Type> operands;
};

// The form whose results of this type are sums in its sum_type(). Products are summed up in that
// type; another op takes elements of it.
SumForm sum_form(Op op, std::vector<Type> operands, DType result);

}  // namespace hone
