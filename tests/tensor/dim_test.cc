#include "tensor/dim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checked_math.h"
#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

const Symbol n_symbol = Symbol::get("N", 1, 64), m_symbol = Symbol::get("M", 0, 9);
const Symbol k_symbol = Symbol::get("K", 8, 64, 8), z_symbol = Symbol::get("Z", -5, 5);
const std::vector<Symbol> scope = {n_symbol, m_symbol, k_symbol, z_symbol};
const Dim n = n_symbol, m = m_symbol, k = k_symbol, z = z_symbol;

Dim parse(std::string_view text) {
  Result<Dim> dim = parse_dim(text, scope);
  EXPECT_TRUE(dim.ok()) << text;
  return dim.ok() ? *dim : Dim(-1);
}

std::string parse_error(std::string_view text) {
  Result<Dim> dim = parse_dim(text, scope);
  return dim.ok() ? "parsed as " + dim->to_string() : dim.error().what();
}

TEST(Dim, NumbersAreStaticAndSaturate) {
  EXPECT_EQ((Dim(3) * 4 + 1).value(), 13);
  EXPECT_TRUE((n - n).is(0));
  EXPECT_EQ((Dim(INT64_MAX) + INT64_MAX).value(), kDimLimit);
  EXPECT_EQ((Dim(kDimLimit) * -3).value(), -kDimLimit);
  EXPECT_EQ((n * kDimLimit * 8).range().high, kDimLimit);
  EXPECT_THROW(n.value(), InternalError);
}

TEST(Dim, EqualFormsAreTheSame) {
  EXPECT_EQ(n + n, 2 * n);
  EXPECT_EQ((n + m) * (n - m), n * n - m * m);
  EXPECT_EQ(floordiv(2 * n, 2), n);
  EXPECT_EQ(floordiv(4 * n + m, 4), n + floordiv(m, 4));
  EXPECT_EQ(floordiv(n, 1), n);
  EXPECT_EQ(floordiv(floordiv(n, 4), 2), floordiv(n, 8));
  EXPECT_EQ(floordiv(floordiv(n, 2) + n, 3), floordiv(n, 2));
  EXPECT_EQ(floordiv(6 * n + 4, 8), floordiv(3 * n + 2, 4));
  EXPECT_EQ(floordiv(n - 1, 64), Dim(0));
  EXPECT_EQ(ceildiv(n, 4), floordiv(n + 3, 4));
  EXPECT_NE(n, m);
}

TEST(Dim, DivisibilityFollowsFromTheSymbol) {
  EXPECT_EQ(floordiv(k, 8) * 8, k);
  EXPECT_EQ(mod(k, 4), Dim(0));
  EXPECT_EQ(mod(k * n + 3, 8), Dim(3));
  EXPECT_TRUE((k * n + 16).divisible_by(8));
  EXPECT_FALSE((k + 4).divisible_by(8));
  EXPECT_FALSE(n.divisible_by(2));
}

TEST(Dim, ExactQuotients) {
  EXPECT_EQ((n * m * 768).divided_by(12 * 64), n * m);
  EXPECT_EQ((n * m).divided_by(m), n);
  EXPECT_EQ((2 * n * m).divided_by(2 * m), n);
  EXPECT_EQ((n * m + n).divided_by(m + 1), n);
  EXPECT_EQ((n * n - 1).divided_by(n + 1), n - 1);
  EXPECT_EQ((k * n).divided_by(4 * n), floordiv(k, 4));
  EXPECT_EQ(Dim(12).divided_by(-4), Dim(-3));
  EXPECT_EQ((6 * n).divided_by(-3), -2 * n);
  for (Dim none : {Dim(0), 2 * n, m, n + 1}) EXPECT_EQ((n * 3).divided_by(none), std::nullopt);
}

TEST(Dim, RangesAreExactForShapesOfRealModels) {
  EXPECT_EQ((2 * n + 1).range(), (Range{3, 129}));
  EXPECT_EQ((n * m - m).range(), (Range{0, 9 * 63}));
  EXPECT_EQ(mod(n, 8).range(), (Range{0, 7}));
  EXPECT_EQ((n - floordiv(n, 2)).range(), (Range{1, 32}));
  EXPECT_EQ(floordiv(10 - m, 4).range(), (Range{0, 2}));
  EXPECT_EQ((z * z).range(), (Range{0, 25}));
  EXPECT_EQ(k.range(), (Range{8, 64}));
  EXPECT_EQ((n - ceildiv(n, 4) * 4 + 3).range(), (Range{0, 3}));
}

TEST(Dim, ProvableOrder) {
  EXPECT_TRUE(provably_le(n, 64));
  EXPECT_TRUE(provably_lt(m, m + 1));
  EXPECT_TRUE(provably_le(m, m * n));
  EXPECT_FALSE(provably_lt(m, m * n));
  EXPECT_FALSE(provably_le(n, m));
  EXPECT_TRUE(provably_lt(mod(n, 4), 4));
}

TEST(Dim, PrintsForPeople) {
  EXPECT_EQ((1 + 2 * n).to_string(), "2*N + 1");
  EXPECT_EQ((Dim(0) - n * n * m - 3).to_string(), "-M*N*N - 3");
  EXPECT_EQ(floordiv(n + 3, 4).to_string(), "(N + 3)/4");
  EXPECT_EQ((floordiv(n, 4) * 3 * m).to_string(), "3*M*(N/4)");
  EXPECT_EQ((k * n).to_string(), "K*N");
  EXPECT_EQ(floordiv(k, 8).to_string(), "K/8");
  EXPECT_EQ((k * 2 + floordiv(k, 8) * m).to_string(), "(K/8)*M + 2*K");
}

TEST(Dim, ParsesAndExplainsWhatItCannot) {
  EXPECT_EQ(parse(" -(N+3) / 4*2 - -1"), floordiv(-1 * n - 3, 4) * 2 + 1);
  EXPECT_EQ(parse_error("N + Q"), "dim \"N + Q\": symbol 'Q' is not declared at column 5");
  EXPECT_EQ(parse_error("N M"), "dim \"N M\": expected an operator at column 3");
  EXPECT_EQ(parse_error("(N"), "dim \"(N\": expected ')' at column 3");
  EXPECT_EQ(parse_error(""), "dim \"\": expected a number, a symbol or '(' at column 1");
  EXPECT_THAT(parse_error("4611686018427387905"),
              says("dim \"4611686018427387905\" ... 4611686018427387905 ... 2^62 ... column 1"));
  for (std::string_view bad : {"N/0", "4/N", "N/(2-3)"}) {
    EXPECT_THAT(parse_error(bad), says("divisor ... positive"));
  }
  EXPECT_THAT(parse_error(std::string(100000, '(')), testing::HasSubstr("too deeply nested"));
  std::string power = "(N+M+K+Z+1)";
  for (int i = 0; i < 12; ++i) power += "*(N+M+K+Z+1)";
  EXPECT_THAT(parse_error(power), testing::HasSubstr("too many terms"));
}

TEST(Dim, MatchSolvesForOneSymbol) {
  Bindings found;
  EXPECT_TRUE(match_dim(2 * n + 1, 7, found).ok());
  EXPECT_EQ(found.at("N"), Dim(3));
  EXPECT_TRUE(match_dim(n * m, 12, found).ok());
  EXPECT_EQ(found.at("M"), Dim(4));
  EXPECT_TRUE(match_dim(k + 1, 17, found).ok());
  EXPECT_EQ(found.at("K"), Dim(16));
  EXPECT_THAT(match_dim(n, 4, found).error().what(), says("size 4 ... N ... 3"));
  EXPECT_EQ(match_dim(Dim(5), 4, found).error().what(), "size 4 is not 5");
}

TEST(Dim, MatchChecksTheLimitsOfTheSymbol) {
  Bindings found;
  EXPECT_THAT(match_dim(n, 65, found).error().what(), says("size 65 ... 1..64 ... N"));
  EXPECT_THAT(match_dim(2 * n, 7, found).error().what(), says("size 7 ... 2*N ... N"));
  EXPECT_THAT(match_dim(k, 12, found).error().what(), says("size 12 ... K ... multiple of 8"));
  EXPECT_TRUE(match_dim(n * m, 12, found).ok());
  EXPECT_TRUE(found.empty());
  EXPECT_EQ(check_binding(k_symbol, 12).error().what(), "K = 12 is not a multiple of 8");
  EXPECT_EQ(check_binding(n_symbol, 0).error().what(), "N = 0 is outside of 1..64");
}

TEST(Dim, BindReplacesAnySubset) {
  Dim dim = floordiv(n * m + 3, 4) + k;
  EXPECT_EQ(dim.symbols(), (std::vector<Symbol>{k_symbol, m_symbol, n_symbol}));
  EXPECT_EQ(dim.bind({{"N", 4}}), m + k);
  EXPECT_EQ(dim.bind({{"N", 5}, {"M", 2}, {"K", 8}}), Dim(11));
  EXPECT_EQ(dim.bind({{"N", 2 * z}}), floordiv(2 * z * m + 3, 4) + k);
  EXPECT_THROW(dim.bind({{"K", 12}}), InternalError);
}

// A random expression, built as a Dim and evaluated without one at each of several points.
struct Sample {
  Dim dim;
  std::vector<int64_t> values;
};

struct Generator {
  Rng rng;
  std::vector<Bindings> points;

  explicit Generator(uint64_t seed) : rng(seed) {
    for (int i = 0; i < 6; ++i) {
      points.push_back({{"N", rng.between(1, 64)},
                        {"M", rng.between(0, 9)},
                        {"K", 8 * rng.between(1, 8)},
                        {"Z", rng.between(-5, 5)}});
    }
  }

  Sample leaf() {
    Sample sample;
    if (rng.chance(0.4)) {
      int64_t number = rng.between(-9, 9);
      return {number, std::vector<int64_t>(points.size(), number)};
    }
    const Symbol& symbol = rng.pick(scope);
    sample.dim = symbol;
    for (const Bindings& point : points) sample.values.push_back(point.at(symbol.name()).value());
    return sample;
  }

  Sample make(int depth) {
    if (depth == 0 || rng.chance(0.1)) return leaf();
    Sample a = make(depth - 1);
    uint64_t op = rng.below(6);
    if (op >= 3) {
      int64_t c = rng.between(1, 12);
      a.dim = op == 3 ? floordiv(a.dim, c) : op == 4 ? mod(a.dim, c) : ceildiv(a.dim, c);
      for (int64_t& v : a.values) {
        v = op == 3 ? floor_div(v, c) : op == 4 ? floor_mod(v, c) : ceil_div(v, c);
      }
      return a;
    }
    Sample b = make(depth - 1);
    a.dim = op == 0 ? a.dim + b.dim : op == 1 ? a.dim - b.dim : a.dim * b.dim;
    for (size_t i = 0; i < a.values.size(); ++i) {
      int64_t v = a.values[i], w = b.values[i];
      a.values[i] = op == 0 ? v + w : op == 1 ? v - w : v * w;
    }
    return a;
  }
};

TEST(DimProperty, ExpressionsKeepTheirValues) {
  Generator generator(1);
  for (int round = 0; round < 3000; ++round) {
    Sample sample = generator.make(3);
    Range range = sample.dim.range();
    EXPECT_EQ(parse(sample.dim.to_string()), sample.dim) << sample.dim.to_string();
    for (size_t i = 0; i < sample.values.size(); ++i) {
      EXPECT_EQ(sample.dim.bind(generator.points[i]), Dim(sample.values[i]))
          << sample.dim.to_string();
      EXPECT_LE(range.low, sample.values[i]) << sample.dim.to_string();
      EXPECT_GE(range.high, sample.values[i]) << sample.dim.to_string();
    }
  }
}

TEST(DimProperty, AProductDividedByAFactorIsTheOther) {
  Generator generator(2);
  for (int round = 0; round < 1000; ++round) {
    Dim a = generator.make(2).dim, b = generator.make(2).dim;
    if (b.is(0)) continue;
    EXPECT_EQ((a * b).divided_by(b), a) << a.to_string() << " times " << b.to_string();
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
