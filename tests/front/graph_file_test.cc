#include "front/hone/graph_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/rng.h"
#include "ir/model_text.h"
#include "ir/reference/evaluate_model.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  ASSERT_TRUE(write_file_atomic(path, text).ok());
}
std::string read(const fs::path& path) { return *read_file(path, 1 << 20); }

std::string load_error(const fs::path& path) {
  Result<Model> model = load_model(path);
  return model.ok() ? "no error" : model.error().to_string();
}

// %x + %w, and as much again of a type that numpy lacks.
Graph with_weights() {
  std::vector<float> numbers(1000);
  fill_normal(numbers, 7);
  std::vector<double> halves(33);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<double>(i) / 2;
  Graph graph("sum");
  ValueId x = graph.add_parameter(Type::get(DType::f32, {1000}), "x");
  ValueId w = graph.add_constant(
      Tensor::of<float>(Type::get(DType::f32, {1000}), std::span<const float>(numbers)), "/odd:w");
  ValueId b = graph.add_constant(Tensor::from_reals(Type::get(DType::bf16, {33}), halves));
  std::vector<int64_t> nibbles(33, 1);
  nibbles[0] = -8;
  ValueId n = graph.add_constant(Tensor::from_integers(Type::get(DType::i4, {33}), nibbles));
  ValueId y = graph.result(*graph.append(Op::get(Opcode::add), std::vector{x, w}));
  graph.set_outputs({y, b, n});
  return graph;
}

TEST(GraphFile, WeightsLieBesideTheText) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  fs::path path = folder.path() / "sum.hone";
  Model model = model_of(with_weights());
  ASSERT_TRUE(save_model(path, model).ok());
  EXPECT_TRUE(read(path).starts_with("weights \"sum.npz\"\n\ngraph @sum(%x: f32[1000]) -> "));
  Result<Model> loaded = load_model(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ(*print(*loaded), *print(model));  // with all bytes
  // Over itself, while the weights are mapped.
  ASSERT_TRUE(save_model(path, *loaded).ok());
  EXPECT_EQ(*print(*load_model(path)), *print(model));
}

TEST(GraphFile, SmallModelsAreOneFile) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  std::string text = "graph @f(%x: f32[]) -> f32[] {\n  %y = neg %x : f32[]\n  return %y\n}\n";
  write(folder.path() / "a.hone", text);
  Result<Model> model = load_model(folder.path() / "a.hone");
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(save_model(folder.path() / "b.hone", *model).ok());
  EXPECT_EQ(read(folder.path() / "b.hone"), text);
  EXPECT_FALSE(fs::exists(folder.path() / "b.npz"));
}

TEST(GraphFile, ModelsOfSegmentsAreKept) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  std::string text =
      "model @m(%p: bool[], %x: f32[2]) -> (%y: f32[2]) {\n"
      "  %y = if %p {\n"
      "    yield %x\n"
      "  } else {\n"
      "    %z = run %x\n"
      "      graph @neg(%x: f32[2]) -> f32[2] {\n"
      "        %y = neg %x : f32[2]\n"
      "        return %y\n"
      "      }\n"
      "    yield %z\n"
      "  }\n"
      "}\n";
  write(folder.path() / "a.hone", text);
  Result<Model> model = load_model(folder.path() / "a.hone");
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  ASSERT_TRUE(save_model(folder.path() / "b.hone", *model).ok());
  EXPECT_EQ(read(folder.path() / "b.hone"), text);
}

TEST(GraphFile, ErrorsNameTheFile) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  fs::path path = folder.path() / "a.hone";
  EXPECT_NE(load_error(path).find(path.string()), std::string::npos);
  write(path, "graph @f(%x: f32[]) {\n  %y = nug %x\n}");
  EXPECT_NE(load_error(path).find(path.string() + ":2:8"), std::string::npos) << load_error(path);
  // Faults that only the verifier sees.
  write(path, "model @m() -> (%y: f32[]) {\n}");
  EXPECT_NE(load_error(path).find(path.string()), std::string::npos) << load_error(path);
}

TEST(GraphFile, OnlyFilesOfTheSameFolderAreOpened) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  fs::create_directory(folder.path() / "inner");
  ASSERT_TRUE(save_model(folder.path() / "w.hone", model_of(with_weights())).ok());
  std::string text = read(folder.path() / "w.hone");
  fs::path path = folder.path() / "inner" / "a.hone";
  for (std::string name : {"../w.npz", "/etc/passwd", "inner/w.npz", "..", "."}) {
    std::string changed = text;
    changed.replace(changed.find("w.npz"), 5, name);
    write(path, changed);
    EXPECT_NE(load_error(path), "no error") << name;
  }
  fs::create_symlink(folder.path() / "w.npz", folder.path() / "inner" / "w.npz");
  write(path, text);
  EXPECT_NE(load_error(path), "no error");
}

TEST(GraphFile, MissingWeightsAreAnError) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  fs::path path = folder.path() / "a.hone";
  write(path, "weights \"a.npz\"\ngraph @f() { return }");
  EXPECT_NE(load_error(path).find("a.npz"), std::string::npos) << load_error(path);
  write(path, "graph @f() { %c = constant @w : f32[2] return %c }");
  EXPECT_NE(load_error(path).find("without weights"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
