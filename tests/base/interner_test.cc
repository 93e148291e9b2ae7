#include "base/interner.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace hone::HONE_FILE {
namespace {

struct Word {
  std::string text;
  size_t hash() const { return hash_string(text); }
  bool operator==(const Word&) const = default;
};

// All values fall on one slot.
struct Clash {
  int number = 0;
  size_t hash() const { return 42; }
  bool operator==(const Clash&) const = default;
};

TEST(Interner, EqualValuesShareAPointer) {
  Interner<Word> words;
  const Word* dot = words.intern({"dot"});
  EXPECT_EQ(words.intern({"dot"}), dot);
  EXPECT_NE(words.intern({"conv"}), dot);
  EXPECT_EQ(dot->text, "dot");
  EXPECT_EQ(words.size(), 2u);
}

TEST(Interner, FindNeverAdds) {
  Interner<Word> words;
  EXPECT_EQ(words.find({"dot"}), nullptr);
  EXPECT_EQ(words.size(), 0u);
  const Word* dot = words.intern({"dot"});
  EXPECT_EQ(words.find({"dot"}), dot);
}

TEST(Interner, CollidingHashesStayDifferentValues) {
  Interner<Clash> clashes;
  std::vector<const Clash*> pointers;
  for (int i = 0; i < 100; ++i) pointers.push_back(clashes.intern({i}));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pointers[i]->number, i);
    EXPECT_EQ(clashes.intern({i}), pointers[i]);
  }
}

TEST(Interner, PointersSurviveGrowth) {
  Interner<Word> words;
  std::vector<const Word*> pointers;
  for (int i = 0; i < 20000; ++i) pointers.push_back(words.intern({std::to_string(i)}));
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(words.intern({std::to_string(i)}), pointers[i]);
  EXPECT_EQ(words.size(), 20000u);
}

TEST(Interner, ThreadsThatRaceAgreeOnThePointers) {
  constexpr int values = 5000;
  constexpr int threads = 4;
  Interner<Word> words;
  std::vector<std::vector<const Word*>> seen(threads, std::vector<const Word*>(values));
  std::vector<std::thread> workers;
  for (int thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      for (int i = 0; i < values; ++i) {
        const int value = thread % 2 == 0 ? i : values - 1 - i;
        seen[thread][value] = words.intern({std::to_string(value)});
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (int thread = 1; thread < threads; ++thread) EXPECT_EQ(seen[thread], seen[0]);
  EXPECT_EQ(words.size(), static_cast<size_t>(values));
}

}  // namespace
}  // namespace hone::HONE_FILE
