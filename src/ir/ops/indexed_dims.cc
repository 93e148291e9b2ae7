#include "ir/ops/indexed_dims.h"

#include <algorithm>

#include "ir/ops/checks.h"

namespace hone {

IndexedDims::IndexedDims(Op op, const Ints& window_attr, const Ints& left_out_attr,
                         Type operand_type, Type indices_type)
    : operand(operand_type),
      indices(indices_type),
      index_map(op.ints("index_map")),
      operand_batch_dims(op.ints("operand_batch_dims")),
      index_batch_dims(op.ints("index_batch_dims")),
      left_out(left_out_attr),
      window(window_attr),
      index_vector_dim(op.integer("index_vector_dim")) {
  for (int i = 0; i < operand.rank(); ++i) {
    if (is_window(i)) operand_dims.push_back(i);
  }
  for (int i = 0; i < indices.rank(); ++i) {
    if (i != index_vector_dim) index_dims.push_back(i);
  }
  for (int64_t dim : window) window_dims.push_back(static_cast<int>(dim));
  for (int i = 0; i < outer_rank(); ++i) {
    if (!contains(window, i)) batch_dims.push_back(i);
  }
  for (int64_t dim : index_batch_dims) {
    auto place = std::find(index_dims.begin(), index_dims.end(), static_cast<int>(dim));
    batch_ordinals.push_back(static_cast<int>(place - index_dims.begin()));
  }
  if (indices.is_static()) index_strides = row_major_strides(indices.static_dims());
}

Status IndexedDims::check(std::string_view window_name, std::string_view left_out_name) const {
  if (!is_integer(indices.dtype())) {
    return bad_input("the indices have element type {}, not an integer", name(indices.dtype()));
  }
  if (index_vector_dim < 0 || index_vector_dim > indices.rank()) {
    return bad_input("index_vector_dim {} is outside 0 ... {}, the rank of the indices",
                     index_vector_dim, indices.rank());
  }
  Dim components =
      index_vector_dim == indices.rank() ? Dim(1) : indices.dim(static_cast<int>(index_vector_dim));
  if (components != static_cast<int64_t>(index_map.size())) {
    return bad_input("index_map has {} entries for {} index components", index_map.size(),
                     components.to_string());
  }
  HONE_TRY(expect_distinct_axes(index_map, "index_map", operand.rank()));
  HONE_TRY(expect_sorted_axes(left_out, left_out_name, operand.rank()));
  HONE_TRY(expect_sorted_axes(operand_batch_dims, "operand_batch_dims", operand.rank()));
  HONE_TRY(expect_distinct_axes(index_batch_dims, "index_batch_dims", indices.rank()));
  for (int64_t axis : operand_batch_dims) {
    if (contains(left_out, axis) || contains(index_map, axis)) {
      return bad_input("axis {} is in operand_batch_dims and in {}", axis,
                       contains(left_out, axis) ? left_out_name : "index_map");
    }
  }
  if (contains(index_batch_dims, index_vector_dim)) {
    return bad_input("index_vector_dim {} is in index_batch_dims", index_vector_dim);
  }
  if (index_batch_dims.size() != operand_batch_dims.size()) {
    return bad_input("there are {} operand_batch_dims for {} index_batch_dims",
                     operand_batch_dims.size(), index_batch_dims.size());
  }
  for (size_t i = 0; i < operand_batch_dims.size(); ++i) {
    Dim ours = operand.dim(static_cast<int>(operand_batch_dims[i]));
    Dim theirs = indices.dim(static_cast<int>(index_batch_dims[i]));
    if (ours == theirs) continue;
    return bad_input(
        "batch dim {} of the operand is {}, but its partner, dim {} of the indices, is {}",
        operand_batch_dims[i], ours.to_string(), index_batch_dims[i], theirs.to_string());
  }
  if (window.size() != operand_dims.size()) {
    return bad_input("{} has {} entries; {} operand dims are neither in {} nor batch dims",
                     window_name, window.size(), operand_dims.size(), left_out_name);
  }
  return expect_sorted_axes(window, window_name, outer_rank());
}

bool IndexedDims::is_batch(int operand_dim) const {
  return contains(operand_batch_dims, operand_dim);
}

bool IndexedDims::is_window(int operand_dim) const {
  return !contains(left_out, operand_dim) && !is_batch(operand_dim);
}

Dim IndexedDims::window_size(int operand_dim, Type outer) const {
  auto place = std::find(operand_dims.begin(), operand_dims.end(), operand_dim);
  if (place == operand_dims.end()) return 1;
  return outer.dim(window_dims[static_cast<size_t>(place - operand_dims.begin())]);
}

std::vector<IndexExpr> IndexedDims::index_of_component(const std::vector<IndexExpr>& position,
                                                       int k) const {
  std::vector<IndexExpr> index(static_cast<size_t>(indices.rank()), IndexExpr(k));
  for (size_t i = 0; i < index_dims.size(); ++i) {
    index[static_cast<size_t>(index_dims[i])] = position[i];
  }
  return index;
}

int64_t IndexedDims::index_offset(const Ints& batch, size_t k) const {
  int64_t offset = 0;
  if (index_vector_dim < indices.rank()) {
    offset = static_cast<int64_t>(k) * index_strides[static_cast<size_t>(index_vector_dim)];
  }
  for (size_t i = 0; i < index_dims.size(); ++i) {
    offset += batch[i] * index_strides[static_cast<size_t>(index_dims[i])];
  }
  return offset;
}

Ints IndexedDims::batch_point(int64_t number) const {
  Ints point(index_dims.size());
  for (size_t i = point.size(); i-- > 0;) {
    int64_t size = indices.dim(index_dims[i]).value();
    point[i] = number % size;
    number /= size;
  }
  return point;
}

}  // namespace hone
