#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "tests/fake_cuda/fake_cuda.h"

// The state of the fake GPUs.

namespace hone::fake {

using cuda::Address;
using cuda::Code;

// Codes of the driver.
inline constexpr Code kInvalidValue = 1, kNotInitialized = 3, kInvalidContext = 201,
                      kInvalidImage = 200, kInvalidPtx = 218, kInvalidHandle = 400, kNotFound = 500,
                      kIllegalAddress = 700, kNotSupported = 801, kCaptureUnsupported = 900;

// Work of a stream.
using Work = std::function<Code()>;

struct FakeGraph;
// Runs a graph while a condition is not 0, or once.
struct FakeConditional {
  cuda::Condition condition = 0;
  bool repeats = false;
  std::shared_ptr<FakeGraph> body;
  cuda::Graph given = nullptr;  // the body, for the program
};
// A node of a graph: work, or a condition.
struct FakeNode {
  Work work = {};
  std::shared_ptr<FakeConditional> conditional = nullptr;
};
struct FakeGraph {
  cuda::Context context = nullptr;
  std::vector<FakeNode> nodes = {};
  bool is_body = false;          // of a conditional node
  bool is_behind_early = false;  // its last node is a kernel that may begin early
  bool has_aside = false;        // its last node is not before what is captured next
  cuda::Node last = nullptr;     // what the program knows the last node by
};
struct FakeStream {
  cuda::Context context = nullptr;
  std::deque<Work> queue = {};
  FakeGraph* captured = nullptr;  // what work goes to
};
struct FakeEvent {
  cuda::Context context = nullptr;
  FakeStream* stream = nullptr;  // that it was recorded in
  bool is_recorded = false;
  int64_t at = 0;  // a count of works
};
struct FakeFunction {
  cuda::Context context = nullptr;  // of its module
  Backing backing;
  bool waits = true;     // for the kernels before it
  bool decides = false;  // the kernel of conditions (runtime/cuda/decide_kernel.h)
  int64_t shared_bytes = 48 << 10;
};
// The primary context of a GPU.
struct FakeContext {
  int64_t holders = 0;
  int64_t used = 0;  // bytes
  FakeStream null_stream = {};
};
struct FakeModule {
  cuda::Context context = nullptr;
  uint64_t hash = 0;
  std::map<std::string, FakeFunction> functions;
};
struct FakeLink {
  std::string ptx, cubin;
  int64_t target = 0;  // 0: that of the device
  char* log = nullptr;
  size_t log_bytes = 0;
};

class Machine {
 public:
  static Machine& get();

  void reset(const Gpu& gpu);
  void add(const char* ptx, const char* function, const Backing& backing);

  // Counts a call; what it has to return, if it fails at once.
  Code begin(bool needs_context = true);
  Code fault(Code code, std::string text);  // writes it down

  // Memory.
  Code allocate(size_t bytes, Address& address);
  Code free(Address address);
  // Null: the bytes do not lie in one piece of memory of this context.
  std::byte* memory(Address address, size_t bytes, cuda::Context of = context);
  void check_canaries();

  // Streams.
  FakeStream* stream(cuda::Stream handle);  // null: the context of the thread has no such one
  Code enqueue(cuda::Stream handle, Work work);
  // A kernel that does not wait is done before the work ahead of it.
  Code enqueue_early(cuda::Stream handle, const FakeFunction& function, Work work);
  Code launch(cuda::Stream handle, const FakeGraph& graph);
  Code poll(const FakeStream& stream);  // runs a little
  Code drain(const FakeStream& until);
  bool is_refused(uint64_t hash) const;  // the kernel of a PTX
  void wait_for_links();                 // Gpu::links_together; without the mutex
  Code run(const FakeFunction& function, std::vector<uint64_t> words, int64_t threads);
  std::string faults() const;
  int64_t live() const;
  FakeContext& of_device(cuda::Device device) { return contexts_[device]; }
  FakeContext* known(cuda::Context handle);  // null: nobody holds such a context

  std::recursive_mutex mutex;
  Gpu gpu;
  Counts counts;
  int64_t works = 0;  // that have run
  bool is_started = false;
  int process = 0;                                                  // that started it
  std::map<uint64_t, std::map<std::string, FakeFunction>> kernels;  // by hash of the PTX
  std::optional<Backing> any;                                       // of others
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeModule*> modules;
  std::set<FakeGraph*> graphs;
  std::set<FakeGraph*> graph_runs;
  std::vector<std::weak_ptr<FakeGraph>> bodies;
  std::map<cuda::Condition, std::optional<unsigned>> conditions;  // nothing: nobody has set it
  std::set<FakeLink*> links;

  static thread_local cuda::Context context;  // of a device, or of somebody else

 private:
  Code step();  // of any stream that has work
  Work work_of(FakeStream& stream, const FakeNode& node);
  Code decide(FakeStream& stream, const std::shared_ptr<FakeConditional>& node);
  struct Piece {
    std::byte* pages = nullptr;  // a guard page is before and behind
    size_t page_bytes = 0;
    size_t bytes = 0;
    cuda::Context context = nullptr;
  };
  bool is_whole(const Piece& piece) const;  // nobody wrote behind its end

  std::map<Address, Piece> pieces_;
  std::vector<FakeStream*> all_streams();

  std::map<cuda::Device, FakeContext> contexts_;
  Code lost_ = cuda::kGood;
  std::string faults_;
  std::mt19937_64 random_;
};

}  // namespace hone::fake
