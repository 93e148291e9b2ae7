#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace hone {

// Sorts by rising key(item); equal ones keep their order.
template <class Item, class Key>
void sort_by(std::vector<Item>& list, const Key& key) {
  std::vector<std::pair<decltype(key(list[0])), uint32_t>> keyed;
  keyed.reserve(list.size());
  for (uint32_t i = 0; i < list.size(); ++i) keyed.emplace_back(key(list[i]), i);
  std::ranges::sort(keyed);
  std::vector<Item> sorted;
  sorted.reserve(list.size());
  for (const auto& [value, at] : keyed) sorted.push_back(std::move(list[at]));
  list = std::move(sorted);
}

}  // namespace hone
