#include <gmock/gmock.h>

#include <filesystem>

#include "formats/npz.h"
#include "tests/front/onnx_testing.h"

// Models of scikit-learn as skl2onnx writes them. ONNX Runtime computed the expected results
// : sklearn/make.py makes the files.

namespace hone::onnx_testing::HONE_FILE {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = HONE_TEST_DIR "/front/sklearn";

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".onnx") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

Tensor member(const std::vector<NamedTensor>& members, const std::string& name) {
  const auto found = std::ranges::find(members, name, &NamedTensor::name);
  EXPECT_NE(found, members.end()) << name;
  return found == members.end() ? integers({}, {0}) : found->tensor;
}

class OnnxSklearn : public testing::TestWithParam<std::string> {};

TEST_P(OnnxSklearn, ComputesWhatOnnxRuntimeDoes) {
  const std::string base = (kFolder / GetParam()).string();
  const Result<Model> model = load_onnx(base + ".onnx");
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::vector<NamedTensor> given = read_npz(base + "_in.npz").value();
  const std::vector<NamedTensor> expected = read_npz(base + "_out.npz").value();
  std::vector<Tensor> inputs;
  for (const ModelValue& input : model->inputs) inputs.push_back(member(given, input.name));
  const Result<std::vector<Tensor>> outputs =
      evaluate_model(*model, inputs, {.numerics = Numerics::rounded});
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), expected.size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const Tensor& y = (*outputs)[i];
    const Tensor wanted = member(expected, model->outputs[i].name);
    ASSERT_EQ(y.type().to_string(), wanted.type().to_string()) << model->outputs[i].name;
    EXPECT_THAT(numbers(y), testing::Pointwise(testing::DoubleNear(2e-5), numbers(wanted)))
        << model->outputs[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OnnxSklearn, testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

TEST(OnnxSklearnLabels, NameClassesInTheirOrder) {
  OnnxLabels labels;
  ImportOptions import;
  import.labels = &labels;
  ASSERT_TRUE(load_onnx(kFolder / "people.onnx", import).ok());
  using testing::ElementsAre;
  EXPECT_THAT(labels.strings, ElementsAre("no", "yes", "f", "m", "Cork", "Quay, old", "Sund"));
  EXPECT_THAT(labels.values, ElementsAre("output_label", "sex", "town"));
  EXPECT_THAT(labels.columns.at("output_probability").names, ElementsAre("no", "yes"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
