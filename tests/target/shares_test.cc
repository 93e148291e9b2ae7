#include "target/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Route = std::vector<Crossing>;

std::vector<double> shared(const std::vector<Link>& links, const std::vector<Route>& routes) {
  LinkShares shares(links);
  const std::vector<std::span<const Crossing>> flows(routes.begin(), routes.end());
  std::vector<double> rates(routes.size(), -1);
  shares.share(flows, rates);
  std::vector<double> again(routes.size(), -1);
  shares.share(flows, again);  // nothing is left of the first call
  EXPECT_EQ(rates, again);
  return rates;
}

TEST(LinkShares, FlowsOfOneLinkHaveEqualParts) {
  EXPECT_THAT(shared({{12, 0}}, {{{0}}}), ElementsAre(12));
  EXPECT_THAT(shared({{12, 0}}, {{{0}}, {{0}}, {{0}}}), ElementsAre(4, 4, 4));
}

TEST(LinkShares, WhatAFlowCannotUseIsTheOthers) {
  // The second flow is held back by link 1; the first one has the rest of link 0.
  EXPECT_THAT(shared({{12, 0}, {2, 0}}, {{{0}}, {{0}, {1}}}), ElementsAre(10, 2));
}

TEST(LinkShares, AnUnsharedLinkBoundsEachFlowAlone) {
  EXPECT_THAT(shared({{5, 0, false}}, {{{0}}, {{0}}}), ElementsAre(5, 5));
  EXPECT_THAT(shared({{12, 0}, {5, 0, false}}, {{{0}}, {{0}, {1}}}), ElementsAre(7, 5));
}

TEST(LinkShares, AFlowWithoutLinksHasNoBound) {
  EXPECT_THAT(shared({{12, 0}}, {{}, {{0}}}), ElementsAre(kInfinite, 12));
  EXPECT_THAT(shared({}, {}), ElementsAre());
}

TEST(LinkShares, OneFlowStandsForMany) {
  EXPECT_THAT(shared({{12, 0}, {2, 0}}, {{{0, 2}}, {{0, 1}, {1, 1}}}), ElementsAre(5, 2));
}

// ---- The judge ---------------------------------------------------------------------------------

struct Case {
  std::vector<Link> links;
  std::vector<Route> routes;
};

Case random_case(Rng& rng) {
  Case made;
  const bool is_round = rng.chance(0.5);  // many equal rates
  for (int64_t i = rng.between(1, 12); i > 0; --i) {
    const double rate = is_round ? static_cast<double>(rng.between(1, 4)) : rng.uniform(1, 1e10);
    made.links.push_back({rate, 0, !rng.chance(0.2)});
  }
  for (int64_t i = rng.between(1, 30); i > 0; --i) {
    Route route;
    std::vector<uint32_t> all(made.links.size());
    for (uint32_t link = 0; link < all.size(); ++link) all[link] = link;
    rng.shuffle(all);
    all.resize(rng.below(std::min<size_t>(all.size(), 5) + 1));
    for (uint32_t link : all)
      route.push_back({link, rng.chance(0.1) ? static_cast<uint32_t>(rng.between(1, 9)) : 1});
    made.routes.push_back(route);
  }
  return made;
}

// Only one share is max-min fair. In it no link carries too much. Each flow crosses a link that is
// full and on which no flow has more, or one that it may fill alone.
void expect_fair(const Case& given, const std::vector<double>& rates) {
  constexpr double kSlack = 1e-9;
  std::vector<double> used(given.links.size()), most(given.links.size());
  for (size_t flow = 0; flow < rates.size(); ++flow)
    for (const Crossing& crossing : given.routes[flow]) {
      used[crossing.link] += rates[flow] * crossing.flows;
      most[crossing.link] = std::max(most[crossing.link], rates[flow]);
    }
  for (size_t link = 0; link < used.size(); ++link)
    if (given.links[link].shared)
      EXPECT_LE(used[link], given.links[link].bytes_per_second * (1 + kSlack));
  for (size_t flow = 0; flow < rates.size(); ++flow) {
    bool is_held = given.routes[flow].empty() && rates[flow] == kInfinite;
    for (const Crossing& crossing : given.routes[flow]) {
      const Link& link = given.links[crossing.link];
      if (!link.shared) {
        EXPECT_LE(rates[flow], link.bytes_per_second);
        is_held |= rates[flow] == link.bytes_per_second;
      } else {
        is_held |= used[crossing.link] >= link.bytes_per_second * (1 - kSlack) &&
                   rates[flow] >= most[crossing.link] * (1 - kSlack);
      }
    }
    EXPECT_TRUE(is_held) << "flow " << flow << " could have more than " << rates[flow];
  }
}

TEST(LinkShares, AreFair) {
  Rng rng(1);
  for (int i = 0; i < 5000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Case given = random_case(rng);
    expect_fair(given, shared(given.links, given.routes));
  }
}

TEST(LinkShares, OfFlowsThatShareNothingDoNotDependOnEachOther) {
  Rng rng(2);
  for (int i = 0; i < 500; ++i) {
    Case a = random_case(rng), b = random_case(rng);
    std::vector<double> alone = shared(a.links, a.routes);
    for (double rate : shared(b.links, b.routes)) alone.push_back(rate);
    for (Route route : b.routes) {
      for (Crossing& crossing : route) crossing.link += static_cast<uint32_t>(a.links.size());
      a.routes.push_back(route);
    }
    a.links.insert(a.links.end(), b.links.begin(), b.links.end());
    ASSERT_EQ(shared(a.links, a.routes), alone) << i;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
