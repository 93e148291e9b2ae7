#include "tests/fake_cuda/library_testing.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace hone::tested {

namespace {

template <class Function>
Function found(const char* name) {
  void* const library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  HONE_CHECK(library != nullptr, "{}", dlerror());
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

FakeCuda::~FakeCuda() {
  EXPECT_EQ(faults(), "");
  EXPECT_EQ(live(), 0);
}

std::string FakeCuda::library() { return FAKE_CUDA; }

void FakeCuda::reset(const fake::Gpu& gpu) const { found<fake::Reset>("fake_cuda_reset")(&gpu); }

Result<std::shared_ptr<const CudaDevice>> FakeCuda::device(int number) const {
  return open_cuda_device(library(), number);
}

void FakeCuda::add(const std::string& ptx, const std::string& function,
                   const fake::Backing& backing) const {
  const bool is_known = found<fake::Register>("fake_cuda_register")(ptx.c_str(), function.c_str(),
                                                                    &backing, sizeof backing);
  HONE_CHECK(is_known, "the fake driver was built with another Backing");
}

void FakeCuda::fail(int64_t good, int code) const {
  found<fake::Fail>("fake_cuda_fail")(good, code);
}

fake::Counts FakeCuda::counts() const {
  fake::Counts counts;
  const bool is_known = found<fake::Counted>("fake_cuda_counts")(&counts, sizeof counts);
  HONE_CHECK(is_known, "the fake driver was built with other Counts");
  return counts;
}
int64_t FakeCuda::live() const { return found<fake::Count>("fake_cuda_live")(); }
std::string FakeCuda::faults() const { return found<fake::Faults>("fake_cuda_faults")(); }

CubinStore KeptCubins::store() {
  return {.find = [this](std::string_view key) -> std::optional<std::string> {
            const std::scoped_lock lock(mutex_);
            const auto at = kept.find(key);
            if (at == kept.end()) return std::nullopt;
            ++found;
            return at->second;
          },
          .put =
              [this](std::string_view key, std::string_view cubin) {
                const std::scoped_lock lock(mutex_);
                kept.emplace(key, cubin);
              }};
}

}  // namespace hone::tested
