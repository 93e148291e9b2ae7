// A user of the installed library: builds a graph and evaluates it.
#include <ir/functional.h>
#include <ir/reference/evaluate.h>

#include <cstdio>

hone::Status run() {
  hone::Builder b("affine");
  hone::Value x = b.parameter("x", hone::DType::f32, {3});
  hone::Graph graph = HONE_TRY(b.finish({hone::relu(x * 2.0 + 1.0)}));
  const float data[] = {-1, 0, 1};
  hone::Tensor input = hone::Tensor::of<float>(graph.type(graph.inputs()[0]), data);
  for (const hone::Tensor& y : HONE_TRY(hone::evaluate(graph, {&input, 1}))) {
    for (float v : y.as<float>()) std::printf("%g ", v);  // 0 1 3
    if (y.real_at(2) != 3) return hone::bad_input("2 * 1 + 1 gave {}", y.real_at(2));
  }
  return {};
}

int main() { return run().ok() ? 0 : 1; }
