#include "ir/access.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ir/builder.h"
#include "ir/functional.h"
#include "ir/op_def.h"
#include "tests/ir/op_testing.h"

// The relation of every op against the truth, which is what the reference evaluation computes each
// element from.

namespace hone::tested::HONE_FILE {
namespace {

using Elements = std::set<int64_t>;
using Random = std::mt19937;

int64_t random_in(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// Calls fn(point) for the points of a box in row-major order.
template <class Fn>
void for_each_point(const std::vector<Range>& box, const Fn& fn) {
  if (Region{box}.empty()) return;
  Ints point;
  for (Range range : box) point.push_back(range.low);
  while (true) {
    fn(point);
    size_t d = point.size();
    while (d > 0 && point[d - 1] == box[d - 1].high) {
      point[d - 1] = box[d - 1].low;
      --d;
    }
    if (d == 0) return;
    ++point[d - 1];
  }
}

int64_t linear(const Ints& point, const Ints& dims) {
  int64_t result = 0;
  for (size_t i = 0; i < dims.size(); ++i) result = result * dims[i] + point[i];
  return result;
}

Region bounding_box(const Elements& elements, const Ints& dims) {
  if (elements.empty()) return Region::none(static_cast<int>(dims.size()));
  Region region{std::vector<Range>(dims.size(), Range{INT64_MAX, INT64_MIN})};
  for (int64_t element : elements) {
    for (size_t i = dims.size(); i-- > 0;) {
      int64_t at = element % dims[i];
      element /= dims[i];
      region.dims[i] = {std::min(region.dims[i].low, at), std::max(region.dims[i].high, at)};
    }
  }
  return region;
}

// ---- One application and what is known of it ----------------------------------------------------

struct Applied {
  Op op;
  std::vector<Type> operands;
  std::vector<Type> results;
  AccessRelation relation;
  // sources[operand][result][element of the result]: elements of the operand
  std::vector<std::vector<std::vector<Elements>>> truth;
};

Tensor random_tensor(Type type, Random& random) {
  std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
  for (double& number : numbers) number = static_cast<double>(random_in(random, -1, 5));
  if (is_real(type.dtype())) return Tensor::from_reals(type, numbers);
  std::vector<int64_t> images(numbers.size());
  for (int64_t& image : images) {
    image = is_bool(type.dtype()) ? random_in(random, 0, 1) : random_in(random, -1, 5);
  }
  return Tensor::from_integers(type, images);
}

Applied applied(std::string_view op, const std::vector<std::string>& operands, Random& random) {
  Applied a;
  a.op = op_of(op);
  std::vector<Tensor> inputs;
  std::vector<int> input_of_operand;
  for (const std::string& text : operands) {
    a.operands.push_back(text.empty() ? Type() : type_of(text));
    input_of_operand.push_back(static_cast<int>(inputs.size()));
    if (!text.empty()) inputs.push_back(random_tensor(a.operands.back(), random));
  }
  Application application = {.op = a.op, .operands = a.operands};
  Result<std::vector<Type>> results = infer(application);
  HONE_CHECK(results.ok(), "{}: {}", op, results.error().to_string());
  a.results = *results;
  a.relation = access_of(application, a.results);

  Result<Graph> graph = graph_of(a.op, a.operands);
  HONE_CHECK(graph.ok(), "{}", op);
  Result<std::vector<ElementDependencies>> traced = trace_dependencies(*graph, inputs);
  HONE_CHECK(traced.ok(), "{}: {}", op, traced.error().to_string());
  for (size_t o = 0; o < a.operands.size(); ++o) {
    a.truth.emplace_back();
    for (const ElementDependencies& result : *traced) {
      std::vector<Elements>& per_element = a.truth[o].emplace_back(result.size());
      for (size_t e = 0; e < result.size(); ++e) {
        for (InputElement source : result[e]) {
          if (a.operands[o] && static_cast<int>(source.input) == input_of_operand[o]) {
            per_element[e].insert(source.element);
          }
        }
      }
    }
  }
  return a;
}

// ---- (a) Enumerating the relation ---------------------------------------------------------------

bool mentions(const Access& access, int d) {
  auto in = [&](const IndexExpr& e) { return e.mentions(d); };
  return std::any_of(access.index.begin(), access.index.end(), in) ||
         std::any_of(access.guards.begin(), access.guards.end(),
                     [&](const Guard& g) { return in(g.value); });
}

// The elements that an access touches at a point; none if a guard fails.
Elements touched(const Access& access, Type type, const Ints& point) {
  for (const Guard& guard : access.guards) {
    int64_t value = guard.value.at(point);
    if (value < guard.lower.value() || value >= guard.upper.value()) return {};
  }
  Ints dims = type.static_dims();
  std::vector<Range> box;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t at = access.index[i].at(point);
    bool anywhere = access.is_data_dependent(static_cast<int>(i));
    box.push_back(anywhere ? Range{0, dims[i] - 1} : Range{at, at});
    EXPECT_TRUE(anywhere || (at >= 0 && at < dims[i]))
        << "index " << at << " of dim " << i << " of " << type.to_string();
  }
  Elements elements;
  for_each_point(box, [&](const Ints& at) { elements.insert(linear(at, dims)); });
  return elements;
}

// All points at which `access` counts for a result at the points of `result_access`: dims that
// neither mentions stand still unless they are parallel.
std::vector<Range> points_of(const AccessRelation& relation, const Access& access,
                             const Access& result_access) {
  std::vector<Range> box;
  for (size_t d = 0; d < relation.dims.size(); ++d) {
    bool counts = relation.dims[d].kind == IterKind::parallel ||
                  mentions(access, static_cast<int>(d)) ||
                  mentions(result_access, static_cast<int>(d));
    box.push_back({0, counts ? relation.dims[d].extent.value() - 1 : 0});
  }
  return box;
}

// The results at a point and, along sequential dims, behind it.
Elements results_from(const AccessRelation& relation, const Access& result_access, Type result,
                      const Ints& point) {
  std::vector<Range> box;
  for (size_t d = 0; d < point.size(); ++d) {
    bool runs_on = relation.dims[d].kind == IterKind::sequential &&
                   mentions(result_access, static_cast<int>(d));
    box.push_back({point[d], runs_on ? relation.dims[d].extent.value() - 1 : point[d]});
  }
  Elements elements;
  for_each_point(box,
                 [&](const Ints& later) { elements.merge(touched(result_access, result, later)); });
  return elements;
}

std::vector<Elements> enumerated(const Applied& a, size_t operand, size_t result) {
  std::vector<Elements> sources(static_cast<size_t>(a.results[result].static_elements()));
  const Access& result_access = a.relation.results[result];
  for (const Access& access : a.relation.operands[operand]) {
    for_each_point(points_of(a.relation, access, result_access), [&](const Ints& point) {
      Elements read = touched(access, a.operands[operand], point);
      if (read.empty()) return;
      for (int64_t e : results_from(a.relation, result_access, a.results[result], point)) {
        sources[static_cast<size_t>(e)].insert(read.begin(), read.end());
      }
    });
  }
  return sources;
}

bool is_data_dependent(const AccessRelation& relation) {
  for (const std::vector<Access>& pieces : relation.operands) {
    for (const Access& access : pieces) {
      for (size_t i = 0; i < access.index.size(); ++i) {
        if (access.is_data_dependent(static_cast<int>(i))) return true;
      }
    }
  }
  return false;
}

// Every expression is a sum of multiples of iteration numbers; of at most `most` of them.
bool is_affine(const AccessRelation& relation, int most) {
  auto affine = [&](const IndexExpr& e) {
    int count = 0;
    for (size_t d = 0; d < relation.dims.size(); ++d) {
      std::optional<int64_t> factor = e.coefficient(static_cast<int>(d));
      if (!factor) return false;
      if (*factor != 0) ++count;
    }
    return count <= most;
  };
  for (const std::vector<Access>& pieces : relation.operands) {
    for (const Access& access : pieces) {
      for (const IndexExpr& e : access.index) {
        if (!affine(e)) return false;
      }
      for (const Guard& guard : access.guards) {
        if (!affine(guard.value)) return false;
      }
    }
  }
  return true;
}

// ---- (b), (c) Regions ---------------------------------------------------------------------------

Region random_region(const Ints& dims, bool single, Random& random) {
  Region region;
  for (int64_t size : dims) {
    if (size == 0) return Region::none(static_cast<int>(dims.size()));
    int64_t low = random_in(random, 0, size - 1);
    region.dims.push_back({low, single ? low : random_in(random, low, size - 1)});
  }
  return region;
}

Elements elements_of(const Region& region, const Ints& dims) {
  Elements elements;
  if (region.empty()) return elements;
  for_each_point(region.dims, [&](const Ints& at) { elements.insert(linear(at, dims)); });
  return elements;
}

std::string to_string(const Region& region) {
  std::string text;
  for (Range range : region.dims) text += fmt::format("[{}, {}]", range.low, range.high);
  return text;
}

void expect_region(const Region& got, const Region& wanted, bool exactly, std::string_view what) {
  if (exactly) {
    EXPECT_EQ(to_string(got), to_string(wanted)) << what;
  } else {
    EXPECT_TRUE(got.contains(wanted))
        << what << ": " << to_string(got) << " lacks part of " << to_string(wanted);
  }
}

void check_needed(const Applied& a, size_t result, bool single, bool exact, Random& random) {
  Ints dims = a.results[result].static_dims();
  Region wanted = random_region(dims, single, random);
  std::vector<Region> needed =
      needed_regions(a.relation, a.operands, static_cast<int>(result), wanted);
  for (size_t o = 0; o < a.operands.size(); ++o) {
    if (!a.operands[o]) continue;
    Elements sources;
    for (int64_t e : elements_of(wanted, dims)) {
      const Elements& from = a.truth[o][result][static_cast<size_t>(e)];
      sources.insert(from.begin(), from.end());
    }
    expect_region(needed[o], bounding_box(sources, a.operands[o].static_dims()), exact,
                  fmt::format("operand {} for result {} {}", o, result, to_string(wanted)));
  }
}

void check_reached(const Applied& a, size_t operand, bool single, bool exact, Random& random) {
  if (!a.operands[operand]) return;
  Ints dims = a.operands[operand].static_dims();
  Region changed = random_region(dims, single, random);
  Elements sources = elements_of(changed, dims);
  std::vector<Region> reached =
      reached_regions(a.relation, a.results, static_cast<int>(operand), changed);
  for (size_t r = 0; r < a.results.size(); ++r) {
    Elements hit;
    for (size_t e = 0; e < a.truth[operand][r].size(); ++e) {
      const Elements& from = a.truth[operand][r][e];
      if (std::any_of(from.begin(), from.end(), [&](int64_t s) { return sources.contains(s); })) {
        hit.insert(static_cast<int64_t>(e));
      }
    }
    expect_region(reached[r], bounding_box(hit, a.results[r].static_dims()), exact,
                  fmt::format("result {} from operand {} {}", r, operand, to_string(changed)));
  }
}

// The elements that the evaluation reads of an operand depend on the values of others, or it reads
// less than the relation's rule says. (A select does not look at the other side.)
enum class Precision : uint8_t { exact, superset };

void check(std::string_view op, const std::vector<std::string>& operands, uint32_t seed,
           Precision precision = Precision::exact) {
  SCOPED_TRACE(fmt::format("{} of {}", op, fmt::join(operands, ", ")));
  Random random(seed);
  Applied a = applied(op, operands, random);
  bool exact = precision == Precision::exact && !is_data_dependent(a.relation);
  for (size_t o = 0; o < a.operands.size(); ++o) {
    if (!a.operands[o]) continue;
    for (size_t r = 0; r < a.results.size(); ++r) {
      std::vector<Elements> sources = enumerated(a, o, r);
      for (size_t e = 0; e < sources.size(); ++e) {
        const Elements& truth = a.truth[o][r][e];
        if (exact) {
          ASSERT_EQ(sources[e], truth) << "operand " << o << ", result " << r << "[" << e << "]";
        } else {
          ASSERT_TRUE(
              std::includes(sources[e].begin(), sources[e].end(), truth.begin(), truth.end()))
              << "operand " << o << ", result " << r << "[" << e << "]";
        }
      }
    }
  }
  bool needed_exact = exact && is_affine(a.relation, INT_MAX);
  bool reached_exact = exact && is_affine(a.relation, 1);
  for (int trial = 0; trial < 8; ++trial) {
    bool single = trial < 4;
    for (size_t r = 0; r < a.results.size(); ++r) {
      check_needed(a, r, single, single && needed_exact, random);
    }
    for (size_t o = 0; o < a.operands.size(); ++o) {
      check_reached(a, o, single, single && reached_exact, random);
    }
  }
}

struct Case {
  std::string_view op;
  std::vector<std::string> operands;
  Precision precision = Precision::exact;
};

TEST(AccessTest, RelationsAgreeWithTheReference) {
  const std::vector<Case> cases = {
      {"neg", {"f32[2,3]"}},
      {"not", {"bool[3]"}},
      {"add", {"f32[]", "f32[]"}},
      {"compare {direction = lt}", {"i32[3]", "i32[3]"}},
      {"select", {"bool[2,2]", "f32[2,2]", "f32[2,2]"}, Precision::superset},
      {"cast {dtype = i8}", {"f32[0,3]"}},
      {"bitcast {dtype = i32}", {"f32[4]"}},
      {"broadcast {dims = [2, 3, 4], map = [0, 2]}", {"f32[2,1]"}},
      {"broadcast {dims = [2, 3], map = [1]}", {"f32[3]"}},
      {"reshape {dims = [2, 3]}", {"f32[3,2]"}},
      {"reshape {dims = [2, 1, 12, 5]}", {"f32[2,3,4,5]"}},
      {"reshape {dims = [2, 3, 4]}", {"f32[6,1,4]"}},
      {"reshape {dims = [0, 5]}", {"f32[3,0]"}},
      {"reshape {dims = [1, 1]}", {"f32[]"}},
      {"transpose {permutation = [2, 0, 1]}", {"f32[2,3,4]"}},
      {"slice {start = [1, 0], limit = [4, 6], stride = [1, 4]}", {"f32[5,7]"}},
      {"pad {low = [1, -1], high = [0, 2]}", {"f32[2,3]", "f32[]"}},
      {"pad {low = [-1, 1], high = [-2, 1], interior = [2, 1]}", {"f32[3,2]", "f32[]"}},
      {"pad {low = [-4], high = [5]}", {"f32[3]", "f32[]"}},
      {"pad {low = [2], high = [1], interior = [3]}", {"f32[0]", "f32[]"}},
      {"concat {axis = 1}", {"f32[2,1]", "f32[2,0]", "f32[2,3]"}},
      {"concat {axis = 0}", {"f32[4]"}},
      {"reverse {axes = [0, 1]}", {"f32[3,2]"}},
      {"dynamic_slice {sizes = [2, 3]}", {"f32[4,3]", "i32[]", "i32[]"}},
      {"dynamic_slice {sizes = [3]}", {"f32[3]", "i32[]"}},
      {"dynamic_update", {"f32[4,3]", "f32[2,3]", "i32[]", "i32[]"}},
      {"dynamic_update", {"f32[3]", "f32[3]", "i32[]"}},
      {"gather {offset_dims = [1], collapsed_dims = [0], index_map = [0], index_vector_dim = 1, "
       "sizes = [1, 2]}",
       {"f32[4,2]", "i32[3]"}},
      {"gather {offset_dims = [0, 2], collapsed_dims = [], index_map = [1, 0], index_vector_dim = "
       "0, sizes = [2, 3]}",
       {"f32[4,3]", "i32[2,3]"}},
      {"gather {offset_dims = [2], collapsed_dims = [1], operand_batch_dims = [0], "
       "index_batch_dims = [1], index_map = [1], index_vector_dim = 2, sizes = [1, 1, 2]}",
       {"f32[2,3,3]", "i32[4,2,1]"}},
      {"scatter {window_dims = [1], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
       "combine = add}",
       {"f32[4,3]", "i32[5]", "f32[5,2]"},
       Precision::superset},
      {"scatter {window_dims = [0], inserted_dims = [], index_map = [0], index_vector_dim = 1}",
       {"f32[5]", "i32[3]", "f32[2,3]"},
       Precision::superset},
      {"scatter {window_dims = [], inserted_dims = [1], operand_batch_dims = [0], index_batch_dims "
       "= [1], index_map = [1], index_vector_dim = 2, combine = max}",
       {"f32[2,3]", "i32[4,2]", "f32[4,2]"},
       Precision::superset},
      {"scatter {window_dims = [], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
       "combine = add}",
       {"f32[3]", "i32[0]", "f32[0]"},
       Precision::superset},
      {"segment_reduce {kind = sum}", {"f32[5,2]", "i32[4]"}, Precision::superset},
      {"segment_reduce {kind = max}", {"f32[3]", "u8[3]", "i32[3]"}, Precision::superset},
      {"dot {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}",
       {"f32[2,2,3]", "f32[2,3,2]"}},
      {"dot {lhs_contract = [], rhs_contract = []}", {"f32[2]", "f32[3]"}},
      {"dot {lhs_contract = [0], rhs_contract = [0]}", {"f32[0,2]", "f32[0,3]"}},
      {"conv", {"f32[2,2,5]", "f32[3,2,3]"}},
      {"conv {stride = [2, 1], pad_low = [1, 0], pad_high = [1, 2]}",
       {"f32[1,2,4,4]", "f32[2,2,3,2]"}},
      {"conv {kernel_dilation = [2], pad_low = [2], pad_high = [-1], groups = 2}",
       {"f32[1,4,6]", "f32[4,2,3]"}},
      {"conv {input_dilation = [3], pad_low = [2], pad_high = [2], stride = [2]}",
       {"f32[1,1,4]", "f32[1,1,3]"}},
      {"conv {order = \"b01f_01io->b01f\", stride = [3, 3]}", {"f32[1,5,4,2]", "f32[2,1,2,3]"}},
      {"conv", {"f32[2,3]", "f32[4,3]"}},
      {"reduce {kind = sum, axes = [0, 2]}", {"f32[2,3,2]"}},
      {"reduce {kind = max, axes = []}", {"f32[3]"}},
      {"reduce {kind = min, axes = [0]}", {"f32[0,2]"}},
      {"arg_reduce {kind = max, axis = 1}", {"f32[2,3]"}},
      {"cumulative {kind = sum, axis = 1}", {"f32[2,4]"}},
      {"cumulative {kind = max, axis = 0, exclusive = true}", {"f32[4,2]"}},
      {"cumulative {kind = sum, axis = 0, exclusive = true, reverse = true}", {"f32[4]"}},
      {"cumulative {kind = product, axis = 0, reverse = true}", {"f32[4]"}},
      {"window_reduce {kind = max, window = [1, 3], stride = [1, 2], pad_low = [0, 1], pad_high = "
       "[0, 1]}",
       {"f32[2,6]"}},
      {"window_reduce {kind = sum, window = [2], window_dilation = [3], input_dilation = [2], "
       "pad_low = [1], pad_high = [3]}",
       {"f32[5]"}},
      {"sort {axis = 0}", {"f32[4]"}},
      {"sort {axis = 1, keys = 1}", {"f32[2,3]", "i32[2,3]"}},
  };
  uint32_t seed = 1;
  for (const Case& c : cases) check(c.op, c.operands, seed++, c.precision);
}

// ---- Random applications ------------------------------------------------------------------------

std::string list(const Ints& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }
std::string f32(const Ints& dims) { return "f32" + list(dims); }

Ints random_ints(size_t count, int64_t low, int64_t high, Random& random) {
  Ints numbers(count);
  for (int64_t& n : numbers) n = random_in(random, low, high);
  return numbers;
}

// Some dims with the product, ones included.
Ints random_factors(int64_t product, Random& random) {
  Ints dims;
  while (product > 1 || random_in(random, 0, 2) == 0) {
    int64_t divisor = random_in(random, 1, product);
    while (product % divisor != 0) --divisor;
    dims.push_back(divisor);
    product /= divisor;
  }
  std::shuffle(dims.begin(), dims.end(), random);
  return dims;
}

TEST(AccessTest, RandomReshapes) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    int64_t product = std::vector<int64_t>{12, 24, 36, 30, 16}[seed % 5];
    Ints from = random_factors(product, random);
    check(fmt::format("reshape {{dims = {}}}", list(random_factors(product, random))), {f32(from)},
          seed);
  }
}

TEST(AccessTest, RandomPadsAndSlices) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    Ints dims = random_ints(2, 1, 5, random);
    Ints interior = random_ints(2, 0, 2, random);
    Ints low, high, start, limit;
    for (size_t i = 0; i < 2; ++i) {
      int64_t spread = dims[i] + (dims[i] - 1) * interior[i];
      low.push_back(random_in(random, -spread, 3));
      high.push_back(random_in(random, std::max(-3L, -spread - low[i]), 3));
      start.push_back(random_in(random, 0, dims[i]));
      limit.push_back(random_in(random, start[i], dims[i]));
    }
    check(fmt::format("pad {{low = {}, high = {}, interior = {}}}", list(low), list(high),
                      list(interior)),
          {f32(dims), "f32[]"}, seed);
    check(fmt::format("slice {{start = {}, limit = {}, stride = {}}}", list(start), list(limit),
                      list(random_ints(2, 1, 3, random))),
          {f32(dims)}, seed);
  }
}

TEST(AccessTest, RandomConvolutionsAndWindows) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    size_t spatial = seed % 2 + 1;
    int64_t groups = random_in(random, 1, 2);
    Ints input = random_ints(spatial, 3, spatial == 1 ? 8 : 4, random);
    Ints window = random_ints(spatial, 1, 3, random);
    std::string geometry = fmt::format(
        "stride = {}, pad_low = {}, pad_high = {}, input_dilation = {}",
        list(random_ints(spatial, 1, 3, random)), list(random_ints(spatial, 2, 4, random)),
        list(random_ints(spatial, -1, 2, random)), list(random_ints(spatial, 1, 2, random)));
    std::string dilation = list(random_ints(spatial, 1, 2, random));
    Ints input_dims = {1, groups};
    Ints kernel_dims = {groups * random_in(random, 1, 2), 1};
    input_dims.insert(input_dims.end(), input.begin(), input.end());
    kernel_dims.insert(kernel_dims.end(), window.begin(), window.end());
    check(fmt::format("conv {{{}, kernel_dilation = {}, groups = {}}}", geometry, dilation, groups),
          {f32(input_dims), f32(kernel_dims)}, seed);
    check(fmt::format("window_reduce {{kind = sum, window = {}, {}, window_dilation = {}}}",
                      list(window), geometry, dilation),
          {f32(input)}, seed);
  }
}

// ---- Which ops have a relation ------------------------------------------------------------------

TEST(AccessTest, PrimitiveOpsHaveARelationOrAreOpaque) {
  const std::set<Opcode> opaque = {
      Opcode::if_,        Opcode::while_,     Opcode::scan,           Opcode::call,
      Opcode::parameter,  Opcode::constant,   Opcode::device_index,   Opcode::all_reduce,
      Opcode::all_gather, Opcode::all_to_all, Opcode::reduce_scatter, Opcode::permute,
  };
  for (int i = 0; i < kOpcodeCount; ++i) {
    Opcode opcode = static_cast<Opcode>(i);
    const OpDef& def = op_def(opcode);
    bool structured = def.access != nullptr || is_elementwise(def.opcode);
    bool expected = !is_composite(opcode) && !opaque.contains(opcode);
    EXPECT_EQ(structured, expected) << name(opcode);
  }
}

// ---- Symbolic dims ------------------------------------------------------------------------------

// The index of operand 0, in terms of the result's dims.
std::vector<std::string> symbolic_index(std::string_view op,
                                        std::initializer_list<std::string_view> operands) {
  std::vector<Type> types;
  for (std::string_view text : operands) types.push_back(type_of(text));
  Application application = {.op = op_of(op), .operands = types};
  Result<std::vector<Type>> results = infer(application);
  HONE_CHECK(results.ok(), "{}", results.error().to_string());
  AccessRelation relation = access_of(application, *results);
  std::vector<std::string> texts;
  for (const IndexExpr& e : relation.operands[0][0].index) {
    texts.push_back(e.to_string(relation.dims));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(AccessTest, SymbolicReshapesFallIntoGroups) {
  EXPECT_EQ(symbolic_index("reshape {dims = [N, 24]}", {"f32[N,6,4]"}),
            (Texts{"i0", "floordiv(i1, 4)", "mod(i1, 4)"}));
  EXPECT_EQ(symbolic_index("reshape {dims = [3, 4, M]}", {"f32[12,M]"}),
            (Texts{"4*i0 + i1", "i2"}));
  EXPECT_EQ(symbolic_index("reshape {dims = [N*M, 1, 2, 3]}", {"f32[N,M,6]"}),
            (Texts{"floordiv(i0, M)", "mod(i0, M)", "3*i2 + i3"}));
  EXPECT_EQ(symbolic_index("reshape {dims = [N, M]}", {"f32[N*M]"}), (Texts{"M*i0 + i1"}));
  EXPECT_EQ(symbolic_index("reshape {dims = [2*N, 3]}", {"f32[N,6]"}),
            (Texts{"floordiv(3*i0 + i1, 6)", "mod(3*i0 + i1, 6)"}));
  EXPECT_EQ(symbolic_index("reshape {dims = [N]}", {"f32[1,N,1]"}), (Texts{"0", "i0", "0"}));
}

TEST(AccessTest, SymbolicMovement) {
  EXPECT_EQ(
      symbolic_index("slice {start = [N, 1], limit = [2*N, 4], stride = [1, 2]}", {"f32[3*N,5]"}),
      (Texts{"i0 + N", "2*i1 + 1"}));
  EXPECT_EQ(symbolic_index("reverse {axes = [0]}", {"f32[N]"}), (Texts{"-i0 + N - 1"}));
  EXPECT_EQ(symbolic_index("pad {low = [M], high = [1]}", {"f32[N]", "f32[]"}), (Texts{"i0 - M"}));
}

// ---- Work ---------------------------------------------------------------------------------------

struct Work {
  double flops;
  double bytes;
  bool operator==(const Work&) const = default;
};
std::ostream& operator<<(std::ostream& out, Work work) {
  return out << work.flops << " flops, " << work.bytes << " bytes";
}

Work work_of(std::string_view op, std::initializer_list<std::string_view> operands) {
  std::vector<Type> types;
  for (std::string_view text : operands) types.push_back(text.empty() ? Type() : type_of(text));
  Application application = {.op = op_of(op), .operands = types};
  Result<std::vector<Type>> results = infer(application);
  HONE_CHECK(results.ok(), "{}", results.error().to_string());
  return {flops(application, *results), bytes(application, *results)};
}

TEST(WorkTest, OfPrimitives) {
  EXPECT_EQ(work_of("add", {"f32[2,3]", "f32[2,3]"}), (Work{6, 72}));
  EXPECT_EQ(work_of("dot {lhs_contract = [1], rhs_contract = [0]}", {"f32[4,8]", "f32[8,16]"}),
            (Work{2 * 4 * 8 * 16, 4 * (32 + 128 + 64)}));
  EXPECT_EQ(work_of("reduce {kind = sum, axes = [0]}", {"f16[8,4]"}), (Work{32, 2 * (32 + 4)}));
  EXPECT_EQ(work_of("cumulative {kind = sum, axis = 0}", {"f32[8]"}), (Work{8, 64}));
  EXPECT_EQ(work_of("reshape {dims = [6]}", {"i4[2,3]"}), (Work{0, 6}));
}

TEST(WorkTest, CountsWhatIsTouched) {
  // 2 of 100 rows.
  EXPECT_EQ(work_of("slice {start = [3, 0], limit = [5, 10]}", {"f32[100,10]"}), (Work{0, 160}));
  // Every tenth element: 10 reads, 10 writes.
  EXPECT_EQ(work_of("slice {start = [0], limit = [100], stride = [10]}", {"f32[100]"}),
            (Work{0, 80}));
  EXPECT_EQ(work_of("broadcast {dims = [10, 3], map = [1]}", {"f32[3]"}), (Work{0, 12 + 120}));
  // Three rows of 8 wherever they are, three indices.
  EXPECT_EQ(work_of("gather {offset_dims = [1], collapsed_dims = [0], index_map = [0], "
                    "index_vector_dim = 1, sizes = [1, 8]}",
                    {"f32[1000,8]", "i32[3]"}),
            (Work{0, 96 + 12 + 96}));
  EXPECT_EQ(work_of("dynamic_slice {sizes = [2]}", {"f32[100]", "i32[]"}), (Work{0, 8 + 4 + 8}));
}

TEST(WorkTest, OfComposites) {
  EXPECT_EQ(work_of("relu", {"f32[2,3]"}), (Work{6, 48}));
  EXPECT_EQ(work_of("cumsum {axis = 0}", {"f32[8]"}), (Work{8, 64}));
}

TEST(WorkTest, OfRegions) {
  Type row = Type::get(DType::f32, {4});
  auto body_of = [&](int additions) {
    return [additions](Builder&, std::span<const Value> in) -> std::vector<Value> {
      Value x = in[0];
      for (int i = 0; i < additions; ++i) x = x + in[0];
      return {x};
    };
  };
  Builder b("regions");
  Value x = b.parameter("x", row);
  Value table = b.parameter("table", DType::f32, {7, 4});
  Value predicate = b.parameter("p", Type::scalar(DType::boolean));
  std::vector<Value> in = {x};
  std::vector<Value> chosen = if_else(predicate, in, body_of(1), body_of(3));
  std::vector<Value> rows = {table};
  std::vector<Value> scanned = scan(
      in, rows, [](Builder&, std::span<const Value> v) { return std::vector<Value>{v[0] + v[1]}; });
  std::vector<Value> looped = while_loop(
      in,
      [](Builder&, std::span<const Value> v) {
        return std::vector<Value>{compare("lt", reduce_max(v[0], {0}), 100)};
      },
      body_of(2));
  Result<Graph> graph = b.finish({chosen[0], scanned[0], looped[0]});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  std::map<std::string_view, Work> work;
  for (NodeId node : graph->nodes()) {
    std::vector<const Graph*> regions;
    for (const GraphRef& region : graph->regions(node)) regions.push_back(region.get());
    std::vector<Type> operands = graph->operand_types(node);
    std::vector<Type> results = graph->result_types(node);
    Application application = {graph->op(node), operands, regions};
    work.insert(
        {graph->op(node).name(), {flops(application, results), bytes(application, results)}});
  }
  EXPECT_EQ(work.at("if"), (Work{12, 1 + 16 + 16}));        // the costlier branch
  EXPECT_EQ(work.at("scan"), (Work{28, 16 + 112 + 16}));    // seven steps
  EXPECT_EQ(work.at("while"), (Work{4 + 1 + 8, 16 + 16}));  // condition and body once
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
