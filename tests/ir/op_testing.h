#pragma once

#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/evaluate.h"
#include "tensor/tensor.h"

// Tests of ops as one-liners. Ops and tensors are written as text:
//   expect_eval("reduce {kind = sum, axes = [1]}", {"f32[2,2] 1 2 3 4"}, {"f32[2] 3 7"});
//   expect_infer_error("reduce {kind = sum, axes = [2]}", {"f32[2,2]"}, "axis 2");
// A tensor literal is a type and its elements; one element fills the tensor. Elements may be nan,
// inf, -inf, true, false. Types may use the symbols below. "" stands for an absent operand.

namespace hone::tested {

// N in 0..64, M in 1..64, K in 4..64 in steps of 4.
const std::vector<Symbol>& symbols();

Type type_of(std::string_view text);      // "f32[2,3]", "f32[N, 2*N + 1]"
Tensor tensor_of(std::string_view text);  // "f32[2,3] 1 2 3 4 5 6"
std::vector<Type> types_of(std::initializer_list<std::string_view> texts);
Op op_of(std::string_view text);

// A graph that applies the op to parameters of the given types.
Result<Graph> graph_of(Op op, const std::vector<Type>& operands,
                       std::vector<GraphRef> regions = {});

// "" if equal: NaN equals NaN, and |got - wanted| <= tolerance * max(1, |wanted|).
std::string difference(const Tensor& got, const Tensor& wanted, double tolerance = 0);

// Evaluates in wide mode. An expected "+0" or "-0" is that zero; "0" is either.
void expect_eval(std::string_view op, std::initializer_list<std::string_view> operands,
                 std::initializer_list<std::string_view> expected, double tolerance = 0,
                 std::source_location where = std::source_location::current());

// The types of the results, or an error of this class that says `text` (tests/base/says_testing.h).
void expect_infer(std::string_view op, std::initializer_list<std::string_view> operands,
                  std::initializer_list<std::string_view> expected,
                  std::source_location where = std::source_location::current());
void expect_infer_error(std::string_view op, std::initializer_list<std::string_view> operands,
                        std::string_view text, ErrorCode code = ErrorCode::bad_input,
                        std::source_location where = std::source_location::current());

// An evaluation that fails so.
void expect_eval_error(std::string_view op, std::initializer_list<std::string_view> operands,
                       std::string_view text, ErrorCode code = ErrorCode::bad_input,
                       std::source_location where = std::source_location::current());

}  // namespace hone::tested
