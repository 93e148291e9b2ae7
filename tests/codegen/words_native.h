#pragma once

#include "tests/codegen/native.h"
#include "tests/program/words_testing.h"

namespace hone {

// Holds the native kernel of a contraction against the reference.
inline void check_native(const WordsCase& drawn, const Target& target, double slack = 1) {
  SCOPED_TRACE(print(drawn.schedule));
  const KernelBody& body = drawn.body;
  std::vector<Tensor> memory;
  for (size_t i = 0; i < drawn.inputs.size(); ++i)
    memory.push_back(stored(drawn.inputs[i], body.inputs[i]));
  std::vector<Tensor> expected =
      evaluate(body.graph, drawn.inputs, {.numerics = Numerics::rounded}).value();
  expected[0] = stored(expected[0], body.outputs[0]);
  const TileProgram program = build_kernel(body, drawn.schedule, "k").value();
  expect_close(run_native(program, memory, target, 2).value(), expected, slack);
}

}  // namespace hone
