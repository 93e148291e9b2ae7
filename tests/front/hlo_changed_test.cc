#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "front/hlo/hlo.h"

// The texts from which the fuzz target begins, changed: an error or a model, never a crash.

namespace hone::HONE_FILE {
namespace {

std::vector<std::string> seeds() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HONE_TEST_DIR "/fuzz/corpus/hlo"))
    paths.insert(entry.path());
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths)
    texts.emplace_back(MappedFile::open(path).value().text());
  return texts;
}

// Bytes are changed, cut and doubled; pieces of one text come into another.
std::string changed(Rng& rng, const std::vector<std::string>& all) {
  std::string text = rng.pick(all);
  for (int64_t change = rng.between(1, 4); change > 0 && !text.empty(); --change) {
    const size_t at = rng.below(text.size());
    const std::string& other = rng.pick(all);
    switch (rng.below(6)) {
      case 0: text[at] = static_cast<char>(rng.below(256)); break;
      case 1: text.erase(at, rng.below(12)); break;
      case 2: text.insert(at, other.substr(rng.below(other.size()), rng.below(40))); break;
      case 3: text[at] = "0123456789{}[]<>()%:,=#\"@?-"[rng.below(27)]; break;
      case 4:
        text.insert(at, std::to_string(rng.between(-3, 5) * (int64_t{1} << rng.below(58))));
        break;
      default: text.resize(at);
    }
  }
  return text;
}

void check_changed(uint64_t seed, int count) {
  const std::vector<std::string> all = seeds();
  for (const std::string& text : all) {
    const Result<Model> model = parse_hlo(text, "p");
    ASSERT_TRUE(model.ok()) << model.error().to_string() << "\n" << text;
  }
  Rng rng(seed);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const Result<Model> model = parse_hlo(changed(rng, all), "p");
    if (model.ok()) continue;
    ++refused;
    EXPECT_NE(model.error().code(), ErrorCode::internal) << model.error().to_string();
  }
  EXPECT_GT(refused, count / 2);
}

TEST(HloChanged, EndsWellForChangedTexts) { check_changed(1, 1500); }
TEST(HloChanged, DISABLED_SweepChangedTexts) { check_changed(2, 20'000); }

// A changed file whose reduction looks like an argmax, but starts at a real place.
TEST(HloChanged, RefusesAnArgmaxThatStartsAtARealPlace) {
  const Result<Model> model = parse_hlo(R"(func.func @main(%x: tensor<2x5xf32>) -> tensor<2xi32> {
  %i = stablehlo.iota dim = 1 : tensor<2x5xi32>
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0:2 = stablehlo.reduce(%x init: %c), (%i init: %c) across dimensions = [1]
   : (tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>)
   -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
    %q = stablehlo.select %p, %j, %k : tensor<i1>, tensor<i32>
    %e = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.minimum %j, %k : tensor<i32>
    %r = stablehlo.select %e, %m, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %r : tensor<f32>, tensor<i32>
  }
  return %0#1 : tensor<2xi32>
}
)",
                                        "p");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code(), ErrorCode::bad_input);
}

}  // namespace
}  // namespace hone::HONE_FILE
