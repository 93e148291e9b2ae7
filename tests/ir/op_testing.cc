#include "tests/ir/op_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tests/base/says_testing.h"

namespace hone::tested {

namespace {

// A mistake in a test's own text.
template <class T>
T must(Result<T> result, std::string_view text) {
  HONE_CHECK(result.ok(), "'{}': {}", text, result.error().to_string());
  return std::move(result).value();
}

// Splits "f32[2, 3] 1 2" behind the type.
std::pair<std::string_view, std::string_view> split_literal(std::string_view text) {
  size_t end = text.find(']');
  HONE_CHECK(end != std::string_view::npos, "'{}' starts with no type", text);
  return {text.substr(0, end + 1), text.substr(end + 1)};
}

Result<std::vector<Tensor>> eval_op(std::string_view op,
                                    std::initializer_list<std::string_view> operands) {
  std::vector<Type> types;
  std::vector<Tensor> inputs;
  for (std::string_view text : operands) {
    types.push_back(text.empty() ? Type() : type_of(split_literal(text).first));
    if (!text.empty()) inputs.push_back(tensor_of(text));
  }
  Graph graph = HONE_TRY(graph_of(op_of(op), types));
  return evaluate(graph, inputs);
}

// Where the literal spells a zero's sign and the result has the other one.
std::string wrong_zero(const Tensor& got, std::string_view literal) {
  std::vector<std::string_view> words = split_words(split_literal(literal).second);
  for (int64_t i = 0; i < got.elements(); ++i) {
    std::string_view word = words[words.size() == 1 ? 0 : static_cast<size_t>(i)];
    if (word != "-0" && word != "+0") continue;
    if (std::signbit(got.real_at(i)) != (word == "-0"))
      return fmt::format("[{}] is not {}", i, word);
  }
  return "";
}

bool is_close(double got, double wanted, double tolerance) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return true;
  return std::isfinite(wanted) &&
         std::fabs(got - wanted) <= tolerance * std::max(1.0, std::fabs(wanted));
}

}  // namespace

const std::vector<Symbol>& symbols() {
  static const std::vector<Symbol> all = {Symbol::get("N", 0, 64), Symbol::get("M", 1, 64),
                                          Symbol::get("K", 4, 64, 4)};
  return all;
}

std::vector<Type> types_of(std::initializer_list<std::string_view> texts) {
  std::vector<Type> types;
  for (std::string_view text : texts) types.push_back(text.empty() ? Type() : type_of(text));
  return types;
}

Type type_of(std::string_view text) {
  size_t open = text.find('[');
  HONE_CHECK(open != std::string_view::npos && text.back() == ']', "'{}' is no type", text);
  std::optional<DType> dtype = dtype_from_name(text.substr(0, open));
  HONE_CHECK(dtype.has_value(), "'{}' has an unknown element type", text);
  Dims dims;
  std::string_view list = trim(text.substr(open + 1, text.size() - open - 2));
  if (!list.empty()) {
    for (std::string_view dim : split(list, ',')) {
      dims.push_back(must(parse_dim(trim(dim), symbols()), text));
    }
  }
  return must(Type::make(*dtype, dims), text);
}

Tensor tensor_of(std::string_view text) {
  auto [type_text, elements] = split_literal(text);
  Type type = type_of(type_text);
  size_t count = static_cast<size_t>(type.static_elements());
  std::vector<double> reals;
  std::vector<int64_t> images;
  for (std::string_view word : split_words(elements)) {
    std::string_view number = word.front() == '+' ? word.substr(1) : word;
    if (is_real(type.dtype())) {
      reals.push_back(must(parse_double(number), text));
    } else if (word == "true" || word == "false") {
      images.push_back(word == "true" ? 1 : 0);
    } else if (word.front() != '-') {
      images.push_back(static_cast<int64_t>(std::stoull(std::string(number))));
    } else {
      images.push_back(must(parse_int(number), text));
    }
  }
  size_t given = reals.size() + images.size();
  HONE_CHECK(given == count || given == 1, "'{}' has {} elements, not {}", text, given, count);
  reals.resize(count, reals.empty() ? 0 : reals[0]);
  images.resize(count, images.empty() ? 0 : images[0]);
  return is_real(type.dtype()) ? Tensor::from_reals(type, reals)
                               : Tensor::from_integers(type, images);
}

Op op_of(std::string_view text) { return must(parse_op(text, symbols()), text); }

Result<Graph> graph_of(Op op, const std::vector<Type>& operands, std::vector<GraphRef> regions) {
  Graph graph;
  std::vector<ValueId> values;
  for (Type type : operands) {
    values.push_back(type ? graph.add_parameter(type) : ValueId::none());
  }
  NodeId node = HONE_TRY(graph.append(op, values, std::move(regions)));
  std::vector<ValueId> outputs;
  for (ValueId v : graph.results(node)) outputs.push_back(v);
  graph.set_outputs(outputs);
  return graph;
}

std::string difference(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.type() != wanted.type()) {
    return fmt::format("{} instead of {}", got.type().to_string(), wanted.type().to_string());
  }
  for (int64_t i = 0; i < got.elements(); ++i) {
    if (!is_real(got.dtype())) {
      if (got.integer_at(i) == wanted.integer_at(i)) continue;
      return fmt::format("[{}] is {} instead of {}", i, got.integer_at(i), wanted.integer_at(i));
    }
    if (is_close(got.real_at(i), wanted.real_at(i), tolerance)) continue;
    return fmt::format("[{}] is {} instead of {}", i, format_double(got.real_at(i)),
                       format_double(wanted.real_at(i)));
  }
  return "";
}

void expect_eval(std::string_view op, std::initializer_list<std::string_view> operands,
                 std::initializer_list<std::string_view> expected, double tolerance,
                 std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                               fmt::format("{} of {}", op, join(operands, ", ")));
  Result<std::vector<Tensor>> results = eval_op(op, operands);
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  ASSERT_EQ(results->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    std::string_view literal = expected.begin()[i];
    std::string wrong = difference((*results)[i], tensor_of(literal), tolerance);
    if (wrong.empty() && is_real((*results)[i].dtype())) wrong = wrong_zero((*results)[i], literal);
    EXPECT_EQ(wrong, "") << "in result " << i;
  }
}

void expect_infer(std::string_view op, std::initializer_list<std::string_view> operands,
                  std::initializer_list<std::string_view> expected, std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                               fmt::format("{} of {}", op, join(operands, ", ")));
  std::vector<Type> types = types_of(operands);
  Result<std::vector<Type>> results = infer({.op = op_of(op), .operands = types});
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  std::vector<std::string> got;
  std::vector<std::string> wanted;
  for (Type type : *results) got.push_back(type.to_string());
  for (Type type : types_of(expected)) wanted.push_back(type.to_string());
  EXPECT_EQ(got, wanted);
}

void expect_infer_error(std::string_view op, std::initializer_list<std::string_view> operands,
                        std::string_view text, ErrorCode code, std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                               fmt::format("{} of {}", op, join(operands, ", ")));
  std::vector<Type> types = types_of(operands);
  Result<std::vector<Type>> results = infer({.op = op_of(op), .operands = types});
  ASSERT_FALSE(results.ok()) << "infers " << results->at(0).to_string();
  EXPECT_THAT(results.error(), refuses(code, std::string(text)));
}

void expect_eval_error(std::string_view op, std::initializer_list<std::string_view> operands,
                       std::string_view text, ErrorCode code, std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                               fmt::format("{} of {}", op, join(operands, ", ")));
  Result<std::vector<Tensor>> results = eval_op(op, operands);
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(results.error(), refuses(code, std::string(text)));
}

}  // namespace hone::tested
