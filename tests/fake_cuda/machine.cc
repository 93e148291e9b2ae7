#include "tests/fake_cuda/machine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/hash.h"

namespace hone::fake {

namespace {

constexpr size_t kPage = 4096;
constexpr std::byte kCanary{0xc7}, kGarbage{0xa5};

// "devices=1,version=12040,capability=90,memory=1000" of the environment, for programs whose GPU
// nobody can set.
Gpu gpu_of_environment() {
  Gpu gpu;
  const char* text = std::getenv("FAKE_CUDA");
  if (text == nullptr) return gpu;
  std::string_view left = text;
  while (!left.empty()) {
    const std::string_view field = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), field.size() + 1));
    const std::string name(field.substr(0, field.find('=')));
    const int64_t value = std::atoll(std::string(field.substr(name.size() + 1)).c_str());
    if (name == "devices") gpu.devices = static_cast<int>(value);
    if (name == "version") gpu.version = static_cast<int>(value);
    if (name == "capability") gpu.capability = static_cast<int>(value);
    if (name == "memory") gpu.memory = value;
    if (name == "failing_call") gpu.failing_call = value;
    if (name == "failing_code") gpu.failing_code = static_cast<int>(value);
  }
  return gpu;
}

// True if some line of the function, in a kernel's PTX, waits for the kernels before it.
bool has_wait(std::string_view ptx, std::string_view function) {
  constexpr std::string_view kEntry = ".entry ";
  const size_t begin = ptx.find(fmt::format("{}{}(", kEntry, function));
  if (begin == std::string_view::npos) return false;
  std::string_view text = ptx.substr(begin + kEntry.size());
  text = text.substr(0, text.find(kEntry));
  constexpr std::string_view kWait = "griddepcontrol.wait;";
  for (size_t at = text.find(kWait); at != std::string_view::npos; at = text.find(kWait, at + 1)) {
    const size_t before = text.substr(0, at).find_last_not_of(" \t");
    if (before != std::string_view::npos && text[before] == '\n') return true;
  }
  return false;
}

}  // namespace

thread_local cuda::Context Machine::context = nullptr;

Machine& Machine::get() {
  static Machine& machine = *[] {
    auto* made = new Machine;
    made->reset(gpu_of_environment());
    return made;
  }();
  return machine;
}

void Machine::reset(const Gpu& with) {
  gpu = with;
  counts = {};
  works = 0;
  lost_ = cuda::kGood;
  faults_.clear();
  kernels.clear();
  bodies.clear();
  conditions.clear();
  any.reset();
  random_.seed(with.seed);
}

void Machine::add(const char* ptx, const char* function, const Backing& backing) {
  if (*ptx == '\0')
    any = backing;
  else
    kernels[hash_string(ptx)][function] = {.backing = backing, .waits = has_wait(ptx, function)};
}

Code Machine::begin(bool needs_context) {
  if (++counts.calls == gpu.failing_call) {
    if (gpu.failing_code >= kIllegalAddress) {
      lost_ = gpu.failing_code;
      for (FakeStream* one : all_streams()) one->queue.clear();
    }
    return gpu.failing_code;
  }
  if (lost_ != cuda::kGood) return lost_;
  if (!is_started) return fault(kNotInitialized, "a call before cuInit");
  if (process != ::getpid()) return kNotInitialized;  // a copy of a process has no GPU
  if (needs_context && known(context) == nullptr)
    return fault(kInvalidContext, "a call without a context");
  return cuda::kGood;
}

Code Machine::fault(Code code, std::string text) {
  faults_ += text + "\n";
  return code;
}

std::string Machine::faults() const { return faults_; }

int64_t Machine::live() const {
  int64_t held = 0;
  for (const auto& [device, one] : contexts_)
    held += one.holders + std::ssize(one.null_stream.queue);
  return held +
         static_cast<int64_t>(pieces_.size() + streams.size() + events.size() + modules.size() +
                              graphs.size() + graph_runs.size() + links.size());
}

// ---- Memory ------------------------------------------------------------------------------------

Code Machine::allocate(size_t bytes, Address& address) {
  if (bytes == 0) return fault(kInvalidValue, "an allocation of 0 bytes");
  FakeContext& here = *known(context);
  if (here.used + static_cast<int64_t>(bytes) > gpu.memory) return cuda::kNoMemory;
  const size_t inner = (bytes + kPage - 1) / kPage * kPage;
  void* const pages =
      mmap(nullptr, inner + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return cuda::kNoMemory;
  auto* const first = static_cast<std::byte*>(pages) + kPage;
  mprotect(first, inner, PROT_READ | PROT_WRITE);
  std::memset(first, static_cast<int>(kGarbage), bytes);
  std::memset(first + bytes, static_cast<int>(kCanary), inner - bytes);
  address = reinterpret_cast<Address>(first);
  pieces_[address] = {static_cast<std::byte*>(pages), inner + 2 * kPage, bytes, context};
  here.used += static_cast<int64_t>(bytes);
  return cuda::kGood;
}

bool Machine::is_whole(const Piece& piece) const {
  const std::byte* const first = piece.pages + kPage;
  const size_t inner = piece.page_bytes - 2 * kPage;
  return std::all_of(first + piece.bytes, first + inner,
                     [](std::byte one) { return one == kCanary; });
}

Code Machine::free(Address address) {
  const auto found = pieces_.find(address);
  if (found == pieces_.end()) return fault(kInvalidValue, "memory is freed that nobody has");
  FakeContext* const of = known(found->second.context);
  if (found->second.context != context && lost_ == cuda::kGood)
    (void)fault(kInvalidContext, "memory is freed in the context of another GPU");
  if (!is_whole(found->second)) (void)fault(kIllegalAddress, "somebody wrote behind his memory");
  // Work that is still to be done may use it: touching it ends the process.
  munmap(found->second.pages, found->second.page_bytes);
  if (of != nullptr) of->used -= static_cast<int64_t>(found->second.bytes);
  pieces_.erase(found);
  return cuda::kGood;
}

std::byte* Machine::memory(Address address, size_t bytes, cuda::Context of) {
  auto found = pieces_.upper_bound(address);
  if (found == pieces_.begin()) return nullptr;
  --found;
  if (found->second.context != of) return nullptr;
  const size_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

void Machine::check_canaries() {
  for (const auto& [address, piece] : pieces_)
    if (!is_whole(piece)) (void)fault(kIllegalAddress, "somebody wrote behind his memory");
}

// ---- Streams -----------------------------------------------------------------------------------

FakeStream* Machine::stream(cuda::Stream handle) {
  if (handle == nullptr) {
    ++counts.of_null_stream;
    return &known(context)->null_stream;
  }
  auto* const stream = reinterpret_cast<FakeStream*>(handle);
  return streams.contains(stream) && stream->context == context ? stream : nullptr;
}

FakeContext* Machine::known(cuda::Context handle) {
  for (auto& [device, one] : contexts_)
    if (reinterpret_cast<cuda::Context>(&one) == handle && one.holders > 0) return &one;
  return nullptr;
}

std::vector<FakeStream*> Machine::all_streams() {
  std::vector<FakeStream*> all;
  for (auto& [device, one] : contexts_) all.push_back(&one.null_stream);
  all.insert(all.end(), streams.begin(), streams.end());
  return all;
}

Code Machine::enqueue(cuda::Stream handle, Work work) {
  FakeStream* const to = stream(handle);
  if (to == nullptr) return fault(kInvalidHandle, "there is no such stream");
  if (to->captured == nullptr) {
    to->queue.push_back(std::move(work));
    return cuda::kGood;
  }
  if (to->captured->has_aside)
    return fault(kInvalidValue, "work is captured beside a condition, not behind it");
  to->captured->nodes.push_back({std::move(work)});
  to->captured->is_behind_early = false;
  return cuda::kGood;
}

Code Machine::launch(cuda::Stream handle, const FakeGraph& graph) {
  FakeStream* const to = stream(handle);
  if (to == nullptr || to->captured != nullptr)
    return fault(kInvalidHandle, "a graph is launched in no such stream");
  for (const FakeNode& node : graph.nodes) to->queue.push_back(work_of(*to, node));
  return cuda::kGood;
}

Work Machine::work_of(FakeStream& stream, const FakeNode& node) {
  if (node.conditional == nullptr) return node.work;
  return [this, &stream, conditional = node.conditional] { return decide(stream, conditional); };
}

// Puts what is to be run before all else in the stream.
Code Machine::decide(FakeStream& stream, const std::shared_ptr<FakeConditional>& node) {
  const auto known = conditions.find(node->condition);
  if (known == conditions.end() || !known->second)
    return fault(kInvalidValue, "a condition of a graph that nobody has set");
  if (*known->second == 0) return cuda::kGood;
  std::deque<Work> first;
  for (const FakeNode& one : node->body->nodes) first.push_back(work_of(stream, one));
  if (node->repeats) first.push_back([this, &stream, node] { return decide(stream, node); });
  stream.queue.insert(stream.queue.begin(), first.begin(), first.end());
  return cuda::kGood;
}

Code Machine::enqueue_early(cuda::Stream handle, const FakeFunction& function, Work work) {
  ++counts.early;
  FakeStream* const to = stream(handle);
  if (to == nullptr || function.waits) {
    const Code code = enqueue(handle, std::move(work));
    if (to != nullptr && to->captured != nullptr) to->captured->is_behind_early = true;
    return code;
  }
  const auto put = [](auto& works, auto one) {
    works.insert(works.empty() ? works.end() : works.end() - 1, std::move(one));
  };
  if (to->captured != nullptr)
    put(to->captured->nodes, FakeNode{std::move(work)});
  else
    put(to->queue, std::move(work));
  return cuda::kGood;
}

// Runs streams, one work after another, until this one is empty.
Code Machine::drain(const FakeStream& until) {
  while (!until.queue.empty())
    if (const Code code = step(); code != cuda::kGood) return code;
  check_canaries();
  return cuda::kGood;
}

Code Machine::poll(const FakeStream& stream) {
  if (stream.queue.empty()) return cuda::kGood;
  const Code code = step();
  return code == cuda::kGood ? cuda::kNotReady : code;
}

Code Machine::step() {
  std::vector<FakeStream*> ready;
  for (FakeStream* one : all_streams())
    if (!one->queue.empty()) ready.push_back(one);
  FakeStream& next = *ready[random_() % ready.size()];
  const Work work = std::move(next.queue.front());
  next.queue.pop_front();
  ++works;
  const Code code = work();
  if (code == cuda::kGood) return code;
  lost_ = code;
  for (FakeStream* one : all_streams()) one->queue.clear();
  return code;
}

bool Machine::is_refused(uint64_t hash) const {
  const auto known = kernels.find(hash);
  return known != kernels.end() && std::ranges::any_of(known->second, [](const auto& function) {
           return function.second.backing.fate.is_refused;
         });
}

void Machine::wait_for_links() {
  for (int i = 0; i < 500; ++i) {
    {
      const std::scoped_lock lock(mutex);
      if (counts.most_links >= gpu.links_together) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The trips in a few pieces, in any order, as blocks of a grid run.
Code Machine::run(const FakeFunction& function, std::vector<uint64_t> words, int64_t threads) {
  const Backing& of = function.backing;
  works += (counts.launches++ < gpu.slow_after ? of.works : 2 * of.works) - 1;
  if (of.fate.launches != nullptr) ++*of.fate.launches;
  if (of.fate.fails != cuda::kGood) return of.fate.fails;
  std::vector<void*> buffers;
  for (int i = 0; i < of.buffers; ++i) {
    const uint64_t word = words[static_cast<size_t>(i)];
    if (word != 0 && memory(word, 0, function.context) == nullptr)  // an empty array has no memory
      return fault(kIllegalAddress, "a kernel gets an address that is not of the GPU");
    buffers.push_back(reinterpret_cast<void*>(words[static_cast<size_t>(i)]));
  }
  const auto* const symbols = reinterpret_cast<const int64_t*>(words.data() + of.buffers);
  const size_t rest = static_cast<size_t>(of.buffers + of.symbols);
  // Threads without a trip touch no scratch.
  const int64_t trips = static_cast<int64_t>(words[rest + 2] - words[rest + 1]);
  const auto scratch = static_cast<size_t>(of.thread_scratch_bytes * std::min(threads, trips));
  if (scratch > 0) {
    std::byte* const at = memory(words[rest], scratch, function.context);
    if (at == nullptr) return fault(kIllegalAddress, "scratch goes beyond the memory");
    std::memset(at, static_cast<int>(kGarbage), scratch);
  }
  const int64_t begin = of.trips > 0 ? 0 : static_cast<int64_t>(words[rest + 1]),
                end = of.trips > 0 ? of.trips : static_cast<int64_t>(words[rest + 2]);
  const int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(random_() % 5), 1, threads);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < pieces; ++i) order.push_back(i);
  std::ranges::shuffle(order, random_);
  std::vector<std::byte> own(static_cast<size_t>(of.cpu_scratch_bytes + kBufferAlignment),
                             kGarbage);
  void* aligned = own.data();
  size_t space = own.size();
  std::align(static_cast<size_t>(kBufferAlignment), static_cast<size_t>(of.cpu_scratch_bytes),
             aligned, space);
  for (int64_t i : order) {
    const int64_t from = begin + (end - begin) * i / pieces;
    const int64_t to = begin + (end - begin) * (i + 1) / pieces;
    if (from < to) of.function(buffers.data(), symbols, aligned, from, to);
  }
  return cuda::kGood;
}

}  // namespace hone::fake
