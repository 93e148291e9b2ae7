#include "program/tiles/access_counter.h"

#include <algorithm>
#include <set>

namespace hone {

void AccessCounter::note(const void* statement, tile::BufferId buffer, size_t element,
                         int64_t count) {
  if (counts_ == nullptr) return;
  const BufferRole role = program_.buffers[buffer].role;
  if (role == BufferRole::own || role == BufferRole::scratch) return;
  const int64_t visit = visits_[statement]++;
  Access& access = accesses_[{statement, visit}];
  const int64_t width = bits(program_.buffers[buffer].type.dtype());
  access.buffer = buffer;
  access.width = count * width;
  access.places.push_back(static_cast<int64_t>(element) * width / 8);
}

void AccessCounter::end_warp() {
  for (const auto& [statement, access] : accesses_) {
    if (program_.buffers[access.buffer].role == BufferRole::block)
      count_turns(access.places, access.width);
    else
      count_sectors(access.places, access.width);
  }
  accesses_.clear();
}

// Words of one bank take turns. Threads that have a word for each bank together go at a time.
void AccessCounter::count_turns(const std::vector<int64_t>& places, int64_t width) {
  constexpr int64_t kBanks = 32, kWord = 4;
  const int64_t words_of_each = std::max<int64_t>(width / 8 / kWord, 1);
  const auto at_a_time = static_cast<size_t>(kBanks / words_of_each);
  ++counts_->block_accesses;
  for (size_t first = 0; first < places.size(); first += at_a_time) {
    std::map<int64_t, std::set<int64_t>> words;  // by bank
    for (size_t t = first; t < std::min(first + at_a_time, places.size()); ++t)
      for (int64_t w = 0; w < words_of_each; ++w) {
        const int64_t word = places[t] / kWord + w;
        words[word % kBanks].insert(word);
      }
    size_t turns = 0;
    for (const auto& [bank, own] : words) turns = std::max(turns, own.size());
    counts_->bank_conflicts += static_cast<int64_t>(turns) - 1;
  }
}

void AccessCounter::count_sectors(const std::vector<int64_t>& places, int64_t width) {
  constexpr int64_t kSector = 32;
  std::set<int64_t> sectors;
  for (int64_t place : places) sectors.insert(place / kSector);
  const std::set<int64_t> distinct(places.begin(), places.end());
  const int64_t bytes = std::max<int64_t>(std::ssize(distinct) * width / 8, 1);
  ++counts_->global_accesses;
  counts_->sectors += std::ssize(sectors);
  counts_->least_sectors += (bytes + kSector - 1) / kSector;
}

}  // namespace hone
