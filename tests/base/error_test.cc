#include "base/error.h"

#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return bad_input("{} is odd", n).with_hint("give an even number");
  return n / 2;
}

Result<int> quarter(int n) {
  int h = HONE_TRY(half(n));
  return half(h);
}

TEST(Error, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(7).error().what(), "7 is odd");
  EXPECT_EQ(quarter(6).error().what(), "3 is odd");
}

TEST(Error, WithinPrefixesThePlace) {
  Error error = bad_input("no").within("node 'h'").within("graph 'mlp'");
  EXPECT_EQ(error.where(), "graph 'mlp', node 'h'");
}

TEST(Error, IsCopiedWhole) {
  const Error error = bad_input("no").about("dot").at("a.hone:1:2").with_hint("yes");
  Error copy = error;
  EXPECT_EQ(copy.to_string(), "error: dot: no (a.hone:1:2)\nhint: yes");
  copy = unsupported("other");
  EXPECT_EQ(copy.code(), ErrorCode::unsupported);
  EXPECT_EQ(std::move(copy).as(ErrorCode::limit).code(), ErrorCode::limit);
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
  const Status good, bad = error;
  EXPECT_TRUE(Status(good).ok());
  EXPECT_EQ(Status(bad).error().what(), "dot: no");
}

TEST(Error, TextHasTheHintOnItsOwnLine) {
  std::string text = half(3).error().to_string();
  EXPECT_NE(text.find("3 is odd"), std::string::npos);
  EXPECT_NE(text.find("\nhint: give an even number"), std::string::npos);
}

TEST(Error, AFailedCheckThrowsWithItsMessage) {
  EXPECT_NO_THROW(HONE_CHECK(true));
  try {
    HONE_CHECK(1 > 2, "one is {}", 1);
    FAIL() << "HONE_CHECK let a false condition pass";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("one is 1"), std::string::npos);
  }
}

TEST(Error, TheValueOfAnErrorThrowsWithTheErrorsText) {
  auto message = [](auto&& body) {
    try {
      body();
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message([] { (void)half(3).value(); }).find("3 is odd"), std::string::npos);
  EXPECT_NE(message([] { (void)*half(3); }).find("give an even number"), std::string::npos);
  EXPECT_NE(message([] { (void)half(2).error(); }).find("error of a success"), std::string::npos);
  const Result<int> odd = half(5);
  EXPECT_NE(message([&] { (void)*odd; }).find("5 is odd"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
