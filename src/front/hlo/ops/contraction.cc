#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"

// Matrix products and convolutions.

namespace hone::hlo {
namespace {

// Both in the type of the result, so that products and sums are of that type.
std::pair<Value, Value> in_type_of_result(Node& n) {
  const DType type = n.result().dtype();
  if (is_storage_only(type) || is_bool(type))
    n.refuse(unsupported("with a result of {} is not handled", name(type)));
  return {cast(n.in(0), type), cast(n.in(1), type)};
}

// Dims of the operands that are paired have one size.
void make_equal_along(Node& n, const Ints& lhs, const Ints& rhs) {
  const Value a = n.in(0), b = n.in(1);
  for (size_t i = 0; i < std::min(lhs.size(), rhs.size()); ++i) {
    if (lhs[i] < 0 || lhs[i] >= a.rank() || rhs[i] < 0 || rhs[i] >= b.rank()) continue;
    const Dim left = a.dim(static_cast<int>(lhs[i])), right = b.dim(static_cast<int>(rhs[i]));
    if (!left.is_static() || !right.is_static()) n.make_equal(left, right);
  }
}

// One pair of lists: "contracting_dims = [1] x [0]".
std::optional<std::pair<Ints, Ints>> pair_of(Node& n, std::string_view name) {
  const Attribute* found = n.find(name);
  if (found == nullptr) return std::nullopt;
  if (found->items.size() != 2 || found->items[0].kind != Attribute::Kind::list)
    n.refuse(bad_input("'{}' must be two lists: [1] x [0]", name));
  return std::pair(n.ints_of(found->items[0]), n.ints_of(found->items[1]));
}

// Which dim is which: a digit for a spatial one, else a letter. As hone writes them.
struct Order {
  std::string input, kernel, output;
  int spatial = 0;
};

std::string letters_of(Node& n, const Attribute& list) {
  std::string letters;
  for (const Attribute& item : list.items) {
    if (item.kind == Attribute::Kind::integer && item.integer >= 0 && item.integer <= 9)
      letters.push_back(static_cast<char>('0' + item.integer));
    else if (item.kind == Attribute::Kind::word && item.text.size() == 1)
      letters.push_back(item.text[0]);
    else
      n.refuse(bad_input("a dim of a convolution is a digit or one of b, f, i, o"));
  }
  return letters;
}

// From fields with numbers: input_batch_dimension = 0.
std::string letters_of(Node& n, std::string_view record, std::string_view first, char first_letter,
                       std::string_view second, char second_letter, std::string_view spatial) {
  const Ints places = n.field(record, spatial, Ints());
  std::string letters(places.size() + 2, '?');
  const auto put = [&](int64_t at, char letter) {
    if (at < 0 || at >= static_cast<int64_t>(letters.size()))
      n.refuse(bad_input("the dim {} is outside of rank {}", at, letters.size()));
    letters[static_cast<size_t>(at)] = letter;
  };
  put(n.field(record, first, int64_t{-1}), first_letter);
  put(n.field(record, second, int64_t{-1}), second_letter);
  for (size_t i = 0; i < places.size() && i < 10; ++i)
    put(places[i], static_cast<char>('0' + static_cast<int>(i)));
  return letters;
}

Order order_of(Node& n) {
  Order order;
  const Attribute* found = n.find("dim_numbers|dimension_numbers|dim_labels");
  if (found == nullptr) n.refuse(bad_input("the order of the dims is missing"));
  if (found->kind == Attribute::Kind::word) {  // HLO: b01f_01io->b01f
    const std::string_view text = found->text;
    const size_t middle = text.find('_');
    const size_t arrow = text.find("->");
    if (middle == text.npos || arrow == text.npos || arrow < middle)
      n.refuse(bad_input("'{}' is no order of dims: b01f_01io->b01f", excerpt(text)));
    order.input = text.substr(0, middle);
    order.kernel = text.substr(middle + 1, arrow - middle - 1);
    order.output = text.substr(arrow + 2);
  } else if (found->kind == Attribute::Kind::list && found->items.size() == 3) {
    order.input = letters_of(n, found->items[0]);
    order.kernel = letters_of(n, found->items[1]);
    order.output = letters_of(n, found->items[2]);
  } else if (found->kind == Attribute::Kind::record) {
    constexpr std::string_view kRecord = "dimension_numbers";
    order.input = letters_of(n, kRecord, "input_batch_dimension", 'b', "input_feature_dimension",
                             'f', "input_spatial_dimensions");
    order.kernel = letters_of(n, kRecord, "kernel_output_feature_dimension", 'o',
                              "kernel_input_feature_dimension", 'i', "kernel_spatial_dimensions");
    order.output = letters_of(n, kRecord, "output_batch_dimension", 'b', "output_feature_dimension",
                              'f', "output_spatial_dimensions");
  } else {
    n.refuse(bad_input("the order of the dims must be [b, 0, f]x[0, i, o]->[b, 0, f]"));
  }
  const auto is_order = [&](const std::string& letters, std::string_view pair, int rank) {
    if (static_cast<int>(letters.size()) != rank || rank < 2) return false;
    for (int i = 0; i < rank - 2; ++i)
      if (std::ranges::count(letters, static_cast<char>('0' + i)) != 1) return false;
    return std::ranges::count(letters, pair[0]) == 1 && std::ranges::count(letters, pair[1]) == 1;
  };
  const int rank = n.in(0).rank();
  if (!is_order(order.input, "bf", rank) || !is_order(order.kernel, "io", n.in(1).rank()) ||
      n.in(1).rank() != rank || !is_order(order.output, "bf", n.result().rank()) ||
      n.result().rank() != rank)
    n.refuse(bad_input("the order {}_{}->{} does not fit operands of rank {} and {}", order.input,
                       order.kernel, order.output, rank, n.in(1).rank()));
  order.spatial = rank - 2;
  return order;
}

int axis_of(const std::string& letters, char letter) {
  return static_cast<int>(letters.find(letter));
}

// Groups of the batch become groups of features: the batch dim splits, and its major part goes in
// front of the features.
Value batch_to_features(Node& n, Value x, const Order& order, int64_t groups) {
  const int batch = axis_of(order.input, 'b');
  const int feature = axis_of(order.input, 'f');
  const Ints dims = x.type().static_dims();
  if (dims[static_cast<size_t>(batch)] % groups != 0)
    n.refuse(bad_input("the batch of {} does not divide into {} groups",
                       dims[static_cast<size_t>(batch)], groups));
  Dims split_dims;
  Ints permutation;
  Dims joined;
  // In the split tensor the parts of the batch stand at batch and batch + 1.
  const auto place = [&](int axis) { return axis <= batch ? axis : axis + 1; };
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t size = dims[static_cast<size_t>(i)];
    if (i == batch) {
      split_dims.push_back(groups);
      split_dims.push_back(size / groups);
      permutation.push_back(batch + 1);
      joined.push_back(size / groups);
    } else {
      split_dims.push_back(size);
      if (i == feature) permutation.push_back(batch);
      permutation.push_back(place(i));
      joined.push_back(i == feature ? size * groups : size);
    }
  }
  return reshape(transpose(reshape(x, split_dims), permutation), joined);
}

struct Ragged {
  Ints lhs_batch, rhs_batch;
  Ints lhs, rhs;  // contracted
  int64_t ragged = 0;
  Value sizes;

  Value starts() const { return cumulative("sum", cast(sizes, DType::i64), 0, true); }
};

// True for the places of a group along a dim of x.
Value within_group(Value x, int64_t axis, Value start, Value size) {
  const Dims dims = x.dims();
  const Value place = iota(x.builder(), DType::i64, dims, static_cast<int>(axis));
  const Value first = broadcast(start, dims, {});
  const Value end = first + broadcast(cast(size, DType::i64), dims, {});
  return binary(Opcode::and_, compare("ge", place, first), compare("lt", place, end));
}

// The right side has a dim of groups: each row takes the product with the one of its group. Rows
// behind the last group are 0.
Value of_ragged_rows(Node& n, Value a, Value b, const Ragged& dims) {
  const int64_t at = n.field("ragged_dot_dimension_numbers", "rhs_group_dimensions", int64_t{-1});
  if (at < 0 || at >= b.rank() || b.dim(static_cast<int>(at)) != dims.sizes.dim(0))
    n.refuse(bad_input("the dim {} of {} must have a group for each of {} sizes", at,
                       b.type().to_string(), dims.sizes.dim(0).to_string()));
  Ints order = {at};  // the groups in front: each step takes one
  for (int64_t i = 0; i < b.rank(); ++i)
    if (i != at) order.push_back(i);
  const auto behind_group = [&](Ints axes) {
    for (int64_t& axis : axes) axis -= axis > at ? 1 : 0;
    return axes;
  };
  // Its dim in the result: behind the batch, among what is left of the left side.
  auto row = static_cast<int64_t>(dims.lhs_batch.size());
  for (int64_t i = 0; i < dims.ragged; ++i)
    if (std::ranges::find(dims.lhs_batch, i) == dims.lhs_batch.end() &&
        std::ranges::find(dims.lhs, i) == dims.lhs.end())
      ++row;
  const Type type = n.static_result();
  const Value zeros =
      n.builder().full(type.dtype(), Dims(type.dims().begin(), type.dims().end()), 0);
  const Value state[] = {a, zeros};
  const Value scanned[] = {transpose(b, order), dims.starts(), dims.sizes};
  const std::vector<Value> made = scan(state, scanned, [&](Builder&, std::span<const Value> in) {
    const Value product = dot_general(in[0], in[2], dims.lhs_batch, behind_group(dims.rhs_batch),
                                      dims.lhs, behind_group(dims.rhs));
    const Value here = within_group(product, row, in[3], in[4]);
    return std::vector<Value>{in[0], select(here, product, in[1])};
  });
  return made[1];
}

// The ragged dim is contracted, with this one of the right side: a result for each group.
Value of_ragged_sums(Value a, Value b, const Ragged& dims, int64_t other) {
  const Value state[] = {a, b};
  const Value scanned[] = {dims.starts(), dims.sizes};
  const std::vector<Value> made =
      scan(state, scanned, [&](Builder& inner, std::span<const Value> in) {
        const auto part = [&](Value x, int64_t axis) {
          return select(within_group(x, axis, in[2], in[3]), x, inner.scalar(x.dtype(), 0));
        };
        return std::vector<Value>{in[0], in[1],
                                  dot_general(part(in[0], dims.ragged), part(in[1], other),
                                              dims.lhs_batch, dims.rhs_batch, dims.lhs, dims.rhs)};
      });
  return made[2];
}

}  // namespace

std::vector<Value> map_dot_general(Node& n) {
  constexpr std::string_view kRecord = "dot_dimension_numbers";
  const auto [a, b] = in_type_of_result(n);
  const auto batch = pair_of(n, "batching_dims");
  const auto contract = pair_of(n, "contracting_dims");
  const auto side = [&](const auto& pair, bool left, std::string_view field) {
    if (pair) return left ? pair->first : pair->second;
    return n.field(kRecord, field, Ints());
  };
  const Ints lhs_batch = side(batch, true, "lhs_batching_dimensions|lhs_batch_dims");
  const Ints rhs_batch = side(batch, false, "rhs_batching_dimensions|rhs_batch_dims");
  const Ints lhs = side(contract, true, "lhs_contracting_dimensions|lhs_contracting_dims");
  const Ints rhs = side(contract, false, "rhs_contracting_dimensions|rhs_contracting_dims");
  make_equal_along(n, lhs_batch, rhs_batch);
  make_equal_along(n, lhs, rhs);
  return {dot_general(a, b, lhs_batch, rhs_batch, lhs, rhs)};
}

// One product for each group of neighbours along a dim, the ragged one, whose sizes are data.
// Each group of rows of the left side has a right side of its own. Each group of a contracted dim
// gives a result. Groups along a batch dim change nothing.
std::vector<Value> map_ragged_dot(Node& n) {
  n.need(3);
  constexpr std::string_view kRecord = "ragged_dot_dimension_numbers";
  const auto [a, b] = in_type_of_result(n);
  const Ragged dims = {.lhs_batch = n.field(kRecord, "lhs_batching_dimensions", Ints()),
                       .rhs_batch = n.field(kRecord, "rhs_batching_dimensions", Ints()),
                       .lhs = n.field(kRecord, "lhs_contracting_dimensions", Ints()),
                       .rhs = n.field(kRecord, "rhs_contracting_dimensions", Ints()),
                       .ragged = n.field(kRecord, "lhs_ragged_dimensions", int64_t{-1}),
                       .sizes = n.in(2)};
  if (dims.ragged < 0 || dims.ragged >= a.rank() || dims.lhs.size() != dims.rhs.size())
    n.refuse(
        bad_input("the dims of {} and {} do not fit", a.type().to_string(), b.type().to_string()));
  if (std::ranges::find(dims.lhs_batch, dims.ragged) != dims.lhs_batch.end())
    return {dot_general(a, b, dims.lhs_batch, dims.rhs_batch, dims.lhs, dims.rhs)};
  if (dims.sizes.rank() != 1 || !is_integer(dims.sizes.dtype()))
    n.refuse(unsupported("with sizes of {} is not handled", dims.sizes.type().to_string()));
  const auto contracted = std::ranges::find(dims.lhs, dims.ragged);
  if (contracted == dims.lhs.end()) return {of_ragged_rows(n, a, b, dims)};
  return {of_ragged_sums(a, b, dims, dims.rhs[static_cast<size_t>(contracted - dims.lhs.begin())])};
}

// The product of vectors and matrices.
std::vector<Value> map_dot(Node& n) {
  n.need(2);
  const auto [a, b] = in_type_of_result(n);
  if (a.rank() == 0 || b.rank() == 0) n.refuse(bad_input("of a scalar is not defined"));
  return {dot_general(a, b, {}, {}, {a.rank() - 1}, {0})};
}

namespace {

// The padding of a convolution that is an operand: one row of low and high for each spatial dim. It
// may speak of open sizes. The input is padded by it.
Value padded_by_operand(Node& n, Value x, const Order& order, size_t operand) {
  const Dims given = n.known_dims(operand);
  if (given.size() != 2 * static_cast<size_t>(order.spatial))
    n.refuse(bad_input("there are {} numbers of padding, but {} spatial dims", given.size(),
                       order.spatial));
  Dims low(static_cast<size_t>(x.rank()), 0), high = low;
  for (int i = 0; i < order.spatial; ++i) {
    const auto axis = static_cast<size_t>(axis_of(order.input, static_cast<char>('0' + i)));
    low[axis] = given[2 * static_cast<size_t>(i)];
    high[axis] = given[2 * static_cast<size_t>(i) + 1];
  }
  return n.builder().op(Opcode::pad, {x, n.builder().scalar(x.dtype(), 0)},
                        {{"low", low}, {"high", high}, {"interior", Ints(low.size(), 0)}});
}

// Zeros between the elements of spatial dims.
Value dilated(Node& n, Value x, const Order& order, const Ints& dilation) {
  Ints interior(static_cast<size_t>(x.rank()), 0);
  bool any = false;
  for (size_t i = 0; i < dilation.size(); ++i) {
    if (dilation[i] < 1)
      n.refuse(bad_input("a dilation is {}, but must be at least 1", dilation[i]));
    any = any || dilation[i] > 1;
    interior[static_cast<size_t>(axis_of(order.input, static_cast<char>('0' + i)))] =
        dilation[i] - 1;
  }
  if (!any) return x;
  const Dims none(static_cast<size_t>(x.rank()), 0);
  return n.builder().op(Opcode::pad, {x, n.builder().scalar(x.dtype(), 0)},
                        {{"low", none}, {"high", none}, {"interior", interior}});
}

std::vector<Value> convolved(Node& n, std::optional<size_t> padding_operand) {
  auto [x, w] = in_type_of_result(n);
  const Order order = order_of(n);
  const auto spatial = static_cast<size_t>(order.spatial);
  const Ints ones(spatial, 1);
  const auto numbers = [&](std::string_view names, const Ints& fallback) {
    Ints found = n.field("window", names, fallback);
    if (found.size() != fallback.size())
      n.refuse(bad_input("there are {} numbers '{}', but {} are needed", found.size(),
                         names.substr(names.find('|') + 1), fallback.size()));
    return found;
  };
  const Ints stride = numbers("window_strides|stride", ones);
  const Ints padding =
      padding_operand ? Ints(2 * spatial, 0) : numbers("padding|pad", Ints(2 * spatial, 0));
  Ints lhs = numbers("lhs_dilation|lhs_dilate", ones);
  const Ints rhs = numbers("rhs_dilation|rhs_dilate", ones);
  const Ints turned = numbers("window_reversal|reverse|rhs_reversal", Ints(spatial, 0));
  const int64_t batch_groups = n.integer("batch_group_count", 1);
  int64_t groups = n.integer("feature_group_count", 1);
  if (batch_groups < 1 || groups < 1 || (batch_groups > 1 && groups > 1))
    n.refuse(bad_input("{} groups of features and {} of the batch", groups, batch_groups));
  Ints axes;
  for (size_t i = 0; i < spatial; ++i)
    if (turned[i] != 0) axes.push_back(axis_of(order.kernel, static_cast<char>('0' + i)));
  std::ranges::sort(axes);
  if (!axes.empty()) w = reverse(w, axes);
  if (padding_operand) {  // the dilation comes before the padding
    x = dilated(n, x, order, lhs);
    lhs = ones;
    x = padded_by_operand(n, x, order, *padding_operand);
  }
  if (batch_groups > 1) {
    if (!x.type().is_static()) n.refuse(unsupported("with groups of an open batch is not handled"));
    x = batch_to_features(n, x, order, batch_groups);
    groups = batch_groups;
  }
  Ints low, high;
  for (size_t i = 0; i < spatial; ++i) {
    low.push_back(padding[2 * i]);
    high.push_back(padding[2 * i + 1]);
  }
  if (n.result().is_static() && n.result().static_elements() == 0) {
    const Type type = n.result();
    return {n.builder().full(type.dtype(), Dims(type.dims().begin(), type.dims().end()), 0)};
  }
  return {n.builder().op(Opcode::conv, {x, w},
                         {{"order", order.input + "_" + order.kernel + "->" + order.output},
                          {"stride", stride},
                          {"pad_low", low},
                          {"pad_high", high},
                          {"input_dilation", lhs},
                          {"kernel_dilation", rhs},
                          {"groups", groups}})};
}

}  // namespace

std::vector<Value> map_convolution(Node& n) {
  n.need(2);
  return convolved(n, std::nullopt);
}

std::vector<Value> map_dynamic_conv(Node& n) {
  n.need(3);
  return convolved(n, 2);
}

}  // namespace hone::hlo
