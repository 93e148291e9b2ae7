// Compiles a model, and runs it once on zeros: compile_model model.onnx
#include <session/served.h>

#include <cstdio>

hone::Status run(const char* name) {
  hone::Source source = HONE_TRY(hone::load_source(name));
  hone::NativeOptions options;
  options.target = HONE_TRY(hone::host_target());
  const auto model = HONE_TRY(hone::ServedModel::make(std::move(source), std::move(options)));
  std::vector<hone::Tensor> inputs;
  for (const auto& input : model->inputs()) inputs.push_back(hone::Tensor::zeros(input.type));
  for (const hone::Tensor& output : HONE_TRY(model->runnable()->run(inputs)))
    std::printf("%s: %g ...\n", output.type().to_string().c_str(), output.real_at(0));
  return {};
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hone::Status status = run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  return status.ok() ? 0 : static_cast<int>(status.error().code());
}
