// Runs a compiled model once on zeros: run_model model.honec
#include <runtime/loaded_model.h>

#include <cstdio>

hone::Status run(const char* path) {
  const auto model = HONE_TRY(hone::LoadedModel::load(HONE_TRY(hone::HonecFile::open(path))));
  std::vector<hone::Tensor> inputs;
  for (const auto& port : model->file().inputs()) inputs.push_back(hone::Tensor::zeros(port.type));
  for (const hone::Tensor& output : HONE_TRY(model->run(inputs)))
    std::printf("%s: %g ...\n", output.type().to_string().c_str(), output.real_at(0));
  return {};
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hone::Status status = run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  return status.ok() ? 0 : static_cast<int>(status.error().code());
}
