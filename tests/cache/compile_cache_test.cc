#include "cache/compile_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Optional;

class CompileCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<CompileCache> open(int64_t limit = CompileCache::kDefaultLimit) const {
    return CompileCache::open(folder_, limit).value();
  }
  fs::path file_of(const CompileCache& cache, size_t index = 0) const {
    return folder_ / (cache.list().at(index).name + ".entry");
  }
  // Changes the content of the only entry.
  void edit(const CompileCache& cache, const std::function<void(std::string&)>& change) const {
    const fs::path path = file_of(cache);
    std::string text = read_file(path, 1 << 20).value();
    change(text);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  static void set_age(const fs::path& path, std::chrono::minutes age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }

  const TempDir parent_ = TempDir::create(fs::temp_directory_path()).value();
  const fs::path folder_ = parent_.path() / "deep" / "cache";
};

TEST_F(CompileCacheTest, FindsWhatWasPutIn) {
  const auto cache = open();
  EXPECT_EQ(cache->find("key"), std::nullopt);
  EXPECT_THAT(cache->list(), IsEmpty());
  EXPECT_FALSE(fs::exists(folder_));
  ASSERT_TRUE(cache->put("key", std::string("\0bytes\n", 7)).ok());
  ASSERT_TRUE(cache->put("", "of no key").ok());
  ASSERT_TRUE(cache->put("of nothing", "").ok());
  const auto another = open();
  for (CompileCache* reader : {cache.get(), another.get()}) {
    EXPECT_THAT(reader->find("key"), Optional(std::string("\0bytes\n", 7)));
    EXPECT_THAT(reader->find(""), Optional(std::string("of no key")));
    EXPECT_THAT(reader->find("of nothing"), Optional(std::string()));
    EXPECT_EQ(reader->find("other"), std::nullopt);
  }
  ASSERT_TRUE(cache->put("key", "newer").ok());
  EXPECT_THAT(cache->find("key"), Optional(std::string("newer")));
  EXPECT_EQ(cache->list().size(), 3u);
}

TEST_F(CompileCacheTest, ListsWithTheFirstLineOfTheKeyLastUsedFirst) {
  const auto cache = open();
  ASSERT_TRUE(cache->put("one\nof several lines", "1").ok());
  set_age(file_of(*cache), std::chrono::minutes(3));
  ASSERT_TRUE(cache->put("two", "12345").ok());
  set_age(file_of(*cache), std::chrono::minutes(2));
  EXPECT_EQ(cache->list()[0].title, "two");
  EXPECT_EQ(cache->list()[0].bytes, 56 + 3 + 5);
  EXPECT_EQ(cache->list()[1].title, "one");
  (void)cache->find("one\nof several lines");
  EXPECT_EQ(cache->list()[0].title, "one");
}

TEST_F(CompileCacheTest, ItsFolderIsForItsOwnerAlone) {
  ASSERT_TRUE(open()->put("key", "bytes").ok());
  struct stat info = {};
  ASSERT_EQ(::stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (fs::perms more : {fs::perms::group_write, fs::perms::others_write, fs::perms::all}) {
    fs::permissions(folder_, fs::perms::owner_all | more);
    const auto refused = CompileCache::open(folder_);
    ASSERT_FALSE(refused.ok()) << static_cast<unsigned>(more);
    EXPECT_THAT(refused.error().what(), says("group or others"));
    EXPECT_THAT(refused.error().hint(),
                HasSubstr(fmt::format("chmod go-w '{}'", folder_.native())));
  }
  fs::permissions(folder_, fs::perms(0755));
  EXPECT_THAT(open()->find("key"), Optional(std::string("bytes")));
  std::ofstream(parent_.path() / "file") << "x";
  EXPECT_THAT(CompileCache::open(parent_.path() / "file").error().what(), says("file' ... folder"));
}

// ---- Damage ------------------------------------------------------------------------------------

TEST_F(CompileCacheTest, EveryCutAndEveryFlippedByteIsFound) {
  const auto cache = open();
  const auto put = [&] { ASSERT_TRUE(cache->put("the key", "the bytes").ok()); };
  put();
  const size_t size = fs::file_size(file_of(*cache));
  for (size_t i = 0; i < size; ++i) {
    put();
    edit(*cache, [&](std::string& text) { text[i] = static_cast<char>(text[i] ^ 0x10); });
    EXPECT_EQ(cache->find("the key"), std::nullopt) << "byte " << i;
    EXPECT_THAT(cache->list(), IsEmpty()) << "byte " << i;
    put();
    edit(*cache, [&](std::string& text) { text.resize(i); });
    EXPECT_EQ(cache->find("the key"), std::nullopt) << "cut at " << i;
    EXPECT_THAT(cache->list(), IsEmpty()) << "cut at " << i;
  }
  put();
  edit(*cache, [](std::string& text) { text += '\0'; });
  EXPECT_EQ(cache->find("the key"), std::nullopt);
}

TEST_F(CompileCacheTest, AnEntryUnderAnotherNameIsForeign) {
  const auto cache = open();
  ASSERT_TRUE(cache->put("one", "1").ok());
  const fs::path one = file_of(*cache);
  ASSERT_TRUE(cache->put("two", "2").ok());
  const fs::path two = file_of(*cache) == one ? file_of(*cache, 1) : file_of(*cache);
  fs::copy_file(one, two, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache->find("two"), std::nullopt);
  EXPECT_FALSE(fs::exists(two));
  fs::create_symlink(one, two);
  EXPECT_EQ(cache->find("two"), std::nullopt);
  ASSERT_TRUE(cache->put("two", "2").ok());  // replaces the link
  EXPECT_THAT(cache->find("one"), Optional(std::string("1")));
  EXPECT_THAT(cache->find("two"), Optional(std::string("2")));
}

TEST_F(CompileCacheTest, VerifyRemovesWhatIsNotGoodAndSaysWhy) {
  const auto cache = open();
  ASSERT_TRUE(cache->put("bad", "bytes").ok());
  edit(*cache, [](std::string& text) { text.back() ^= 1; });
  const std::string bad = cache->list()[0].name;
  ASSERT_TRUE(cache->put("good", "bytes").ok());
  std::ofstream(folder_ / "README") << "not an entry";
  const CompileCache::Verified verified = cache->verify();
  EXPECT_EQ(verified.good, 1);
  ASSERT_EQ(verified.removed.size(), 1u);
  EXPECT_EQ(verified.removed[0].name, bad);
  EXPECT_EQ(verified.removed[0].reason, "its checksum is wrong");
  EXPECT_THAT(cache->verify().removed, IsEmpty());
  EXPECT_TRUE(fs::exists(folder_ / "README"));
}

// ---- Size --------------------------------------------------------------------------------------

TEST_F(CompileCacheTest, WhatWasNotUsedForLongestGoesFirst) {
  const auto cache = open();
  const std::string bytes(1000, 'x');
  for (std::string key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(cache->put(key, bytes).ok());
    set_age(file_of(*cache), std::chrono::minutes(10 - (key[0] - 'a')));
  }
  (void)cache->find("a");
  const CompileCache::Collected collected = cache->collect(3 * 1060);
  EXPECT_EQ(collected.removed, 1);
  EXPECT_EQ(collected.kept, 3);
  EXPECT_EQ(collected.kept_bytes, 3 * 1057);
  EXPECT_EQ(cache->find("b"), std::nullopt);
  for (std::string_view key : {"a", "c", "d"}) EXPECT_TRUE(cache->find(key)) << key;
  EXPECT_EQ(cache->collect(0).kept, 0);
  EXPECT_THAT(cache->list(), IsEmpty());
}

TEST_F(CompileCacheTest, StaysWithinItsLimit) {
  constexpr int64_t kLimit = 20000;
  const auto cache = open(kLimit);
  const std::string bytes(1000, 'x');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(cache->put(fmt::format("key {}", i), bytes).ok());
    int64_t total = 0;
    for (const CompileCache::Entry& entry : cache->list()) total += entry.bytes;
    EXPECT_LE(total, kLimit + kLimit / 16);
  }
  EXPECT_TRUE(cache->find("key 199"));
  ASSERT_TRUE(cache->put("large", std::string(kLimit, 'x')).ok());
  EXPECT_FALSE(cache->find("large"));
}

// As runs of a command do: each opens the folder, writes too little to look at it, and ends.
TEST_F(CompileCacheTest, StaysWithinItsLimitOverManyShortProcesses) {
  constexpr int64_t kLimit = 4 << 20, kShare = kLimit / 16;
  const std::string bytes(50000, 'x');
  int64_t most = 0;
  for (int i = 0; i < 200; ++i) {
    const auto cache = open(kLimit);
    ASSERT_TRUE(cache->put(fmt::format("key {}", i), bytes).ok());
    int64_t total = 0;
    for (const CompileCache::Entry& entry : cache->list()) total += entry.bytes;
    most = std::max(most, total);
  }
  EXPECT_LE(most, kLimit + kShare);
  EXPECT_GT(most, kLimit);  // nobody looks each time
  EXPECT_TRUE(open(kLimit)->find("key 199"));
}

TEST_F(CompileCacheTest, AFolderThatNobodyCountedIsLookedAtOnce) {
  const std::string bytes(1000, 'x');
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(open()->put(fmt::format("key {}", i), bytes).ok());
  fs::remove(folder_ / "hone-written");
  const auto cache = open(int64_t{16} << 10);
  ASSERT_TRUE(cache->put("another", bytes).ok());
  EXPECT_THAT(cache->list().size(), AllOf(Gt(10u), Lt(17u)));
}

// Killed in the middle of writing, again and again. What they left is bounded, too, and does not
// hinder one with the same process id.
TEST_F(CompileCacheTest, WhatKilledWritersLeftCounts) {
  constexpr int64_t kLimit = 1 << 20;
  const std::string bytes(10000, 'x');
  ASSERT_TRUE(open(kLimit)->put("key", bytes).ok());
  const std::string left = file_of(*open(kLimit)).native() + fmt::format(".tmp-{}-", ::getpid());
  for (int i = 0; i < 1000; ++i) {
    std::ofstream(left + fmt::format("{}", i)) << std::string(600, 'x');
    if (i % 2 == 0) set_age(left + fmt::format("{}", i), std::chrono::minutes(61));
  }
  const auto cache = open(kLimit);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cache->put("key", bytes).ok());
    ASSERT_TRUE(cache->put(fmt::format("key {}", i), bytes).ok());
  }
  int64_t total = 0;
  size_t entries = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_)) {
    total += static_cast<int64_t>(file.file_size());
    entries += file.path().extension() == ".entry" ? 1 : 0;
  }
  EXPECT_LE(total, kLimit + kLimit / 16);
  EXPECT_GT(entries, 10u);
  EXPECT_FALSE(fs::exists(left + "500"));
  EXPECT_TRUE(fs::exists(left + "501"));
}

TEST_F(CompileCacheTest, CollectsWhatKilledWritersLeftBehind) {
  const auto cache = open();
  ASSERT_TRUE(cache->put("key", "bytes").ok());
  fs::path fresh = file_of(*cache), stale = fresh;
  fresh += ".tmp-1-1";
  stale += ".tmp-1-2";
  std::ofstream(fresh) << "x";
  std::ofstream(stale) << "x";
  set_age(stale, std::chrono::minutes(61));
  EXPECT_EQ(cache->collect().removed, 1);
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(cache->find("key"));
}

// ---- Many at once ------------------------------------------------------------------------------

// The content of the key is known, so a wrong hit is seen. Returns the number of them.
int64_t use(CompileCache& cache, uint64_t seed, int times) {
  Rng rng(seed);
  int64_t wrong = 0;
  for (int i = 0; i < times; ++i) {
    const uint64_t k = rng.below(20);
    const std::string key = fmt::format("key {}", k);
    const std::string bytes(1 + 3000 * k, static_cast<char>('a' + k));
    const std::optional<std::string> found = cache.find(key);
    if (found && *found != bytes) ++wrong;
    if (!found && !cache.put(key, bytes).ok()) ++wrong;
    if (i % 50 == 49) cache.collect(200000);
  }
  return wrong;
}

TEST_F(CompileCacheTest, ThreadsShareIt) {
  const auto cache = open();
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { wrong += use(*cache, t, 200); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(cache->verify().removed, IsEmpty());
}

// Processes are killed in the middle of whatever they do; those that end had no wrong hit.
TEST_F(CompileCacheTest, ProcessesShareItAndMayBeKilled) {
  Rng rng(7);
  const auto start = [&](uint64_t seed, int times) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(use(*open(), seed, times) == 0 ? 0 : 1);
    return child;
  };
  uint64_t seed = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) children.push_back(start(++seed, 100000));
    const pid_t finishes = start(++seed, 20);
    std::this_thread::sleep_for(std::chrono::microseconds(500 + rng.below(20000)));
    for (pid_t child : children) ::kill(child, SIGKILL);
    for (pid_t child : children) ::waitpid(child, nullptr, 0);
    int status = 0;
    ::waitpid(finishes, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const auto cache = open();
  const CompileCache::Verified verified = cache->verify();
  EXPECT_GT(verified.good, 0);
  EXPECT_THAT(verified.removed, IsEmpty());
  EXPECT_EQ(use(*cache, 1, 200), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
