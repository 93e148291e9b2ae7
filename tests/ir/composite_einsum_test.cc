#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

// The sum over every assignment of the letters, written down naively. "..." is spelled out as
// capital letters by the caller.
Array einsum(std::string_view equation, const std::vector<Array>& operands) {
  const size_t arrow = equation.find("->");
  const std::vector<std::string_view> terms = split(equation.substr(0, arrow), ',');
  const std::string_view result = equation.substr(arrow + 2);
  std::map<char, int64_t> size, at;
  for (size_t k = 0; k < terms.size(); ++k)
    for (size_t i = 0; i < terms[k].size(); ++i) {
      int64_t& s = size[terms[k][i]];
      s = std::max(s, operands[k].dim(i));
      if (operands[k].dim(i) == 0) s = 0;
    }
  auto offset = [&](std::string_view term, const Ints& dims) {
    size_t o = 0;
    for (size_t i = 0; i < term.size(); ++i)
      o = o * static_cast<size_t>(dims[i]) + static_cast<size_t>(dims[i] == 1 ? 0 : at[term[i]]);
    return o;
  };
  Ints dims;
  for (char c : result) dims.push_back(size[c]);
  Array y(dims);
  int64_t points = 1;
  for (auto [letter, s] : size) points *= s;
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (auto [letter, s] : size) {
      at[letter] = rest % s;
      rest /= s;
    }
    double product = 1;
    for (size_t k = 0; k < terms.size(); ++k)
      product *= operands[k][offset(terms[k], operands[k].dims())];
    y[offset(result, dims)] += product;
  }
  return y;
}

// `plain` is the equation with all dims as letters.
void expect_einsum(std::string_view equation, std::string_view plain, const std::vector<Ints>& dims,
                   std::source_location where = std::source_location::current()) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), equation);
  std::vector<Array> arrays;
  std::vector<Tensor> tensors;
  for (const Ints& d : dims) {
    arrays.push_back(Array::random(d, arrays.size() + 1));
    tensors.push_back(arrays.back().tensor());
  }
  const Tensor got = run_op(fmt::format("einsum {{equation = \"{}\"}}", equation), tensors)[0];
  expect_near(got, einsum(plain, arrays));
}

void expect_einsum(std::string_view equation, const std::vector<Ints>& dims,
                   std::source_location where = std::source_location::current()) {
  expect_einsum(equation, equation, dims, where);
}

TEST(Einsum, OneOperand) {
  expect_einsum("ij->ji", {{2, 3}});
  expect_einsum("ijk->kij", {{2, 3, 4}});
  expect_einsum("ij->i", {{2, 3}});
  expect_einsum("ij->", {{2, 3}});
  expect_einsum("ii->i", {{3, 3}});
  expect_einsum("ii->", {{3, 3}});
  expect_einsum("iij->ji", {{3, 3, 2}});
  expect_einsum("iii->i", {{3, 3, 3}});
  expect_einsum("ijij->ij", {{2, 3, 2, 3}});
}

TEST(Einsum, TwoOperands) {
  expect_einsum("ij,jk->ik", {{2, 3}, {3, 4}});
  expect_einsum("ij,jk->ki", {{2, 3}, {3, 4}});
  expect_einsum("ij,kj->ik", {{2, 3}, {4, 3}});
  expect_einsum("i,j->ij", {{2}, {3}});
  expect_einsum("i,i->", {{3}, {3}});
  expect_einsum("ij,ij->ij", {{2, 3}, {2, 3}});
  expect_einsum("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}});
  expect_einsum("bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}});
  expect_einsum("bqhd,bkhd->bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}});
  expect_einsum("ijk,jil->kl", {{2, 3, 4}, {3, 2, 5}});
  expect_einsum("ijk,l->il", {{2, 3, 4}, {5}});
  expect_einsum("ii,ij->j", {{3, 3}, {3, 2}});
  expect_einsum("ij,k->k", {{2, 3}, {4}});
  expect_einsum(",ij->ji", {{}, {2, 3}});
}

TEST(Einsum, ManyOperands) {
  expect_einsum("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}});
  expect_einsum("bn,anm,bm->ba", {{2, 3}, {4, 3, 5}, {2, 5}});
  expect_einsum("i,i,i,i->i", {{3}, {3}, {3}, {3}});
  expect_einsum("i,j,k->kji", {{2}, {3}, {4}});
}

TEST(Einsum, ImplicitResult) {
  expect_einsum("ij,jk", "ij,jk->ik", {{2, 3}, {3, 4}});
  expect_einsum("ba", "ba->ab", {{2, 3}});
  expect_einsum("ii", "ii->", {{3, 3}});
  expect_einsum("...b,ba", "Xb,ba->Xa", {{5, 2}, {2, 3}});
}

TEST(Einsum, Ellipsis) {
  expect_einsum("...ij,...jk->...ik", "XYij,XYjk->XYik", {{2, 3, 4, 5}, {2, 3, 5, 2}});
  expect_einsum("...ij,...jk->...ik", "XYij,Yjk->XYik", {{2, 3, 4, 5}, {3, 5, 2}});
  expect_einsum("...ij,jk->...ik", "ij,jk->ik", {{4, 5}, {5, 2}});
  expect_einsum("i...->...i", "iXY->XYi", {{2, 3, 4}});
  expect_einsum("i...j->...", "iXj->X", {{2, 3, 4}});
  expect_einsum("...,...->...", "XY,Y->XY", {{2, 3}, {3}});
}

TEST(Einsum, OnesStretch) {
  expect_einsum("ij,ij->ij", {{1, 3}, {2, 3}});
  expect_einsum("ij,ij->ij", {{1, 3}, {2, 1}});
  expect_einsum("ij,jk->ik", {{2, 1}, {3, 4}});
  expect_einsum("...i,...i->...", "XYi,XYi->XY", {{2, 1, 3}, {1, 4, 3}});
  expect_einsum("i,i->i", {{1}, {1}});
}

TEST(Einsum, EmptyDimsIntegersAndBlanks) {
  expect_einsum("ij,jk->ik", {{2, 0}, {0, 3}});
  expect_einsum("ij->j", {{0, 3}});
  expect_einsum(" i j , j k -> i k ", "ij,jk->ik", {{2, 3}, {3, 4}});
  expect_eval("einsum {equation = \"ij,j->i\"}", {"i32[2,2] 1 2 3 4", "i32[2] 10 -1"},
              {"i32[2] 8 26"});
  // Elements off the diagonal are not read.
  expect_eval("einsum {equation = \"ii->i\"}", {"f32[2,2] 1 nan inf 4"}, {"f32[2] 1 4"});
}

TEST(Einsum, SymbolicDims) {
  expect_symbolic("einsum {equation = \"bij,bjk->bik\"}", {"f32[N, M, 3]", "f32[N, 3, K]"});
  expect_symbolic("einsum {equation = \"...ij,jk->...ki\"}", {"f32[N, M, 3, 4]", "f32[4, 5]"});
  expect_symbolic("einsum {equation = \"ii->i\"}", {"f32[M, M]"});
}

TEST(Einsum, EquationsHaveOneSpelling) {
  auto spelled = [](std::string_view equation) {
    return std::string(Op::get(Opcode::einsum, {{"equation", std::string(equation)}})
                           .canonical()
                           .word("equation"));
  };
  EXPECT_EQ(spelled("ij,jk->ik"), "ab,bc->ac");
  EXPECT_EQ(spelled(" x y , y z -> x z"), "ab,bc->ac");
  EXPECT_EQ(spelled("ij,jk"), "ab,bc->ac");
  EXPECT_EQ(spelled("ba"), "ab->ba");
  EXPECT_EQ(spelled("ii"), "aa->");
  EXPECT_EQ(spelled("z...y,yx"), "a...b,bc->...ca");
  EXPECT_EQ(spelled("...,...->..."), "...,...->...");
  EXPECT_EQ(spelled("i...->...i"), "a...->...a");
  EXPECT_EQ(spelled(",ij->ji"), ",ab->ba");
  EXPECT_EQ(spelled(spelled("kj,Zk,j->Z")), spelled("kj,Zk,j->Z"));
  EXPECT_EQ(spelled("what? no"), "what? no");
}

TEST(Einsum, Errors) {
  expect_infer_error("einsum {equation = \"ij,jk->ik\"}", {"f32[2,3]"}, "2 terms for 1 operands");
  expect_infer_error("einsum {equation = \"ij,jk->ik\"}", {"f32[2,3]", "f32[4,5]"},
                     "'j' is 3 and 4");
  expect_infer_error("einsum {equation = \"ii->i\"}", {"f32[2,3]"}, "'i' ... 2 and 3");
  expect_infer_error("einsum {equation = \"ijk->i\"}", {"f32[2,3]"},
                     "operand 0 ... f32[2, 3] ... rank 2 ... 'ijk' ... 3 letters");
  expect_infer_error("einsum {equation = \"i->i\"}", {"f32[2,3]"}, "has 1 letters");
  expect_infer_error("einsum {equation = \"ij->ik\"}", {"f32[2,3]"}, "'k' ... result ... operand");
  expect_infer_error("einsum {equation = \"ij->ii\"}", {"f32[2,3]"}, "'i' ... twice ... result");
  expect_infer_error("einsum {equation = \"i1->i\"}", {"f32[2,3]"}, "unexpected '1'");
  expect_infer_error("einsum {equation = \"...i...->i\"}", {"f32[2,3]"}, "twice");
  expect_infer_error("einsum {equation = \"...i->i\"}", {"f32[2,3]"},
                     "result ... '...' ... operands");
  expect_infer_error("einsum {equation = \"i,i->i\"}", {"f32[2]", "f64[2]"},
                     "want one element type");
  expect_infer_error("einsum {equation = \"\"}", {}, "an equation needs operands");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
