#include "kernel/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::string error_of(const Status& status) { return status.ok() ? "" : status.error().to_string(); }

TEST(Layout, DimsInAnyOrderAndInBlocks) {
  const Type x = Type::get(DType::f32, {2, 32, 5, 7});
  const Layout last = parse_layout("[0, 2, 3, 1]").value();
  EXPECT_EQ(stored_type(last, x).to_string(), "f32[2, 5, 7, 32]");
  const Layout blocks = parse_layout(" [0,1/16, 2, 3, 1 % 16] ").value();
  EXPECT_EQ(print(blocks), "[0, 1/16, 2, 3, 1%16]");
  EXPECT_EQ(stored_type(blocks, x).to_string(), "f32[2, 2, 5, 7, 16]");
  EXPECT_TRUE(check(blocks, x).ok());
  EXPECT_FALSE(blocks.is_row_major());
  EXPECT_TRUE(Layout::row_major(4).is_row_major());
  EXPECT_EQ(print(Layout::row_major(0)), "[]");

  const std::vector<IterDim> dims = parallel_dims(x);
  std::string text;
  for (const IndexExpr& at : stored_index(blocks, identity_index(4)))
    text += at.to_string(dims) + "; ";
  EXPECT_EQ(text, "i0; floordiv(i1, 16); i2; i3; mod(i1, 16); ");
}

TEST(Layout, RefusesWhatIsNoOrderOfTheDims) {
  const Type x = Type::get(DType::f32, {6, Symbol::get("N", 4, 64, 4)});
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[0]", "dim 1 ... f32[6, N]"},
      {"[0, 1, 2]", "dim 2 ... f32[6, N]"},
      {"[0, 1, 0]", "dim 0 ... twice"},
      {"[0, 0/2, 0%2, 1]", "dim 0 ... twice"},
      {"[0, 0%2, 1]", "dim 0 ... blocks of 2 ... half"},
      {"[0/3, 0%2, 1]", "dim 0 ... blocks of 3 ... half"},
      {"[0/4, 0%4, 1]", "blocks of 4 ... dim 0 ... f32[6, N]"},
      {"[0, 1/8, 1%8]", "blocks of 8 ... dim 1 ... f32[6, N]"},
      {"[0, 1/4, 1%4]", ""},
      {"[1, 0/3, 0%3]", ""}};
  for (const auto& [text, error] : cases) {
    SCOPED_TRACE(text);
    const Status status = check(parse_layout(text).value(), x);
    EXPECT_EQ(status.ok(), error.empty());
    if (!error.empty()) EXPECT_THAT(status, says(std::string(error)));
  }
  const Layout odd = {.parts = {{.dim = 0, .block = 1, .is_inner = true}, {.dim = 1}}};
  EXPECT_THAT(error_of(check(odd, x)), says("dim 0 ... block"));
  const Layout none = {.parts = {{.dim = 0, .block = 0}, {.dim = 1}}};
  EXPECT_EQ(error_of(check(none, x)), "error: a block of 0 elements");
}

TEST(Layout, TextThatIsNone) {
  for (std::string_view text :
       {"", "[", "0, 1", "[0 1]", "[0,]", "[,0]", "[x]", "[-1]", "[16]", "[0/1, 0%1]", "[0/, 0%2]",
        "[0/2/2]", "[0, 1] 2", "[99999999999999999999]", "[0%-2]"})
    EXPECT_FALSE(parse_layout(text).ok()) << text;
  std::string many = "[0";
  for (int i = 0; i < 20; ++i) many += ", 0";
  EXPECT_FALSE(parse_layout(many + "]").ok());
  EXPECT_EQ(parse_layout("[0, 1/x]").error().to_string(),
            "error: 'x' is not an integer (layout part '1/x')");
}

// Every element has a place of its own in the memory.
TEST(Layout, IndexIsOneToOne) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    Dims dims;
    Layout layout;
    for (int d = 0; d < 3; ++d) {
      const int64_t block = rng.between(1, 4), count = rng.between(1, 3);
      dims.emplace_back(block * count);
      layout.parts.push_back({.dim = d, .block = block});
      if (block > 1) layout.parts.push_back({.dim = d, .block = block, .is_inner = true});
    }
    rng.shuffle(layout.parts);
    const Type type = Type::get(DType::i32, dims);
    ASSERT_TRUE(check(layout, type).ok());
    EXPECT_EQ(parse_layout(print(layout)).value(), layout);
    const Ints sizes = type.static_dims(), stored = stored_type(layout, type).static_dims();
    std::set<int64_t> places;
    for (int64_t e = 0; e < type.static_elements(); ++e) {
      const std::vector<IndexExpr> at = {e / (sizes[1] * sizes[2]), e / sizes[2] % sizes[1],
                                         e % sizes[2]};
      int64_t place = 0;
      const std::vector<IndexExpr> index = stored_index(layout, at);
      for (size_t i = 0; i < stored.size(); ++i)
        place = place * stored[i] + index[i].as_constant()->value();
      places.insert(place);
    }
    EXPECT_EQ(static_cast<int64_t>(places.size()), type.static_elements());
    EXPECT_EQ(*places.rbegin(), type.static_elements() - 1);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
