#include "tests/fake_cuda/fake_cuda.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "runtime/cuda/decide_kernel.h"
#include "tests/fake_cuda/fake_map.h"
#include "tests/fake_cuda/machine.h"

// The functions of the driver. Their contracts are those of its manual, as far as hone uses them.

namespace hone::fake {
namespace {

using cuda::Context;
using cuda::Device;
using cuda::Event;
using cuda::Function;
using cuda::Graph;
using cuda::GraphRun;
using cuda::Link;
using cuda::Module;
using cuda::Stream;

// Begins a call: returns from the function, if the call fails at once.
#define FAKE_BEGIN(needs_context)                  \
  Machine& machine = Machine::get();               \
  const std::scoped_lock lock(machine.mutex);      \
  const Code begun = machine.begin(needs_context); \
  if (begun != hone::cuda::kGood) return begun
// The same for a call that gives something back, whatever it returns.
#define FAKE_RELEASE()                        \
  Machine& machine = Machine::get();          \
  const std::scoped_lock lock(machine.mutex); \
  const Code begun = machine.begin()

constexpr std::string_view kCubin =
    "\x7f"
    "ELF: a cubin of the fake GPU, for a kernel with the hash ";

std::string cubin_of(uint64_t hash) { return fmt::format("{}{:016x}", kCubin, hash); }

// The shared memory that a block may ask for.
int block_bytes(int capability) {
  const bool is_small = (capability > 80 && capability < 90) || capability >= 120;
  return (is_small ? 99 : capability < 90 ? 163 : 227) << 10;
}

// A copy of these bytes, later. Sizes and places are checked now.
template <class Copy>
Code copy(Machine& machine, Stream stream, const Copy& work) {
  return machine.enqueue(stream, work);
}

// The kernel of conditions, in a stream that is captured.
Code decide_later(Machine& machine, Stream stream, void* const* parameters) {
  uint64_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = *static_cast<const uint64_t*>(parameters[i]);
  const std::byte* const byte = machine.memory(words[0], 1);
  const std::byte* const stop = machine.memory(words[1], sizeof(int32_t));
  if (byte == nullptr || stop == nullptr)
    return machine.fault(kIllegalAddress, "a condition that is not of the GPU");
  if (machine.stream(stream)->captured == nullptr)
    return machine.fault(kIllegalAddress, "a condition is set outside of a graph");
  if (!machine.conditions.contains(words[2]))
    return machine.fault(kIllegalAddress, "no such condition");
  return machine.enqueue(stream, [=, &machine] {
    ++machine.counts.decisions;
    int32_t stops = 0;
    std::memcpy(&stops, stop, sizeof stops);
    const bool holds = (*byte != std::byte{0}) != (words[3] != 0);
    machine.conditions[words[2]] = holds && stops == 0 ? 1U : 0U;
    return hone::cuda::kGood;
  });
}

bool is_in_block(Machine& machine, Stream stream) {
  const FakeStream* const one = machine.stream(stream);
  return one != nullptr && one->captured != nullptr && one->captured->is_body;
}

Code foreign(Machine& machine, std::string_view what) {
  return machine.fault(kInvalidContext, fmt::format("{} of another GPU is used", what));
}

Code bad_range(Machine& machine) {
  return machine.fault(kInvalidValue, "a copy goes beyond a piece of memory");
}

}  // namespace
}  // namespace hone::fake

using namespace hone::fake;  // NOLINT: the functions below have names of their own
using hone::cuda::kGood;

extern "C" {

// ---- For tests ---------------------------------------------------------------------------------

void fake_cuda_reset(const Gpu* gpu) {
  Machine& machine = Machine::get();
  const std::scoped_lock lock(machine.mutex);
  machine.reset(*gpu);
}
bool fake_cuda_register(const char* ptx, const char* function, const Backing* backing,
                        int64_t bytes) {
  if (bytes != sizeof(Backing)) return false;
  Machine& machine = Machine::get();
  const std::scoped_lock lock(machine.mutex);
  machine.add(ptx, function, *backing);
  return true;
}
void fake_cuda_fail(int64_t good, int code) {
  Machine& machine = Machine::get();
  const std::scoped_lock lock(machine.mutex);
  machine.gpu.failing_call = machine.counts.calls + good + 1;
  machine.gpu.failing_code = code;
}
int64_t fake_cuda_calls() { return Machine::get().counts.calls; }
bool fake_cuda_counts(Counts* counts, int64_t bytes) {
  if (bytes != sizeof(Counts)) return false;
  *counts = Machine::get().counts;
  return true;
}
int64_t fake_cuda_live() { return Machine::get().live(); }
const char* fake_cuda_faults() {
  static std::string text;
  text = Machine::get().faults();
  return text.c_str();
}

// ---- The driver and its devices ----------------------------------------------------------------

Code cuInit(unsigned flags) {
  Machine& machine = Machine::get();
  const std::scoped_lock lock(machine.mutex);
  if (!machine.is_started) machine.process = ::getpid();
  machine.is_started = true;
  if (flags != 0) return kInvalidValue;
  if (const Code begun = machine.begin(false); begun != kGood) return begun;
  return machine.gpu.devices == 0 ? hone::cuda::kNoDevice : kGood;
}

Code cuDriverGetVersion(int* version) {
  FAKE_BEGIN(false);
  *version = machine.gpu.version;
  return kGood;
}

Code cuGetErrorName(Code code, const char** text) {
  switch (code) {
    case kInvalidValue: *text = "CUDA_ERROR_INVALID_VALUE"; return kGood;
    case hone::cuda::kNoMemory: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return kGood;
    case kInvalidPtx: *text = "CUDA_ERROR_INVALID_PTX"; return kGood;
    case kIllegalAddress: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return kGood;
    case 718: *text = "CUDA_ERROR_INVALID_PC"; return kGood;
    default: *text = nullptr; return kInvalidValue;
  }
}

Code cuGetErrorString(Code code, const char** text) {
  switch (code) {
    case kInvalidValue: *text = "invalid argument"; return kGood;
    case hone::cuda::kNoMemory: *text = "out of memory"; return kGood;
    case kInvalidPtx: *text = "a PTX JIT compilation failed"; return kGood;
    case kIllegalAddress: *text = "an illegal memory access was encountered"; return kGood;
    case 718: *text = "invalid program counter"; return kGood;
    default: *text = nullptr; return kInvalidValue;
  }
}

Code cuDeviceGetCount(int* count) {
  FAKE_BEGIN(false);
  *count = machine.gpu.devices;
  return kGood;
}

Code cuDeviceGet(Device* device, int number) {
  FAKE_BEGIN(false);
  if (number < 0 || number >= machine.gpu.devices) return 101;
  *device = number;
  return kGood;
}

Code cuDeviceGetName(char* text, int bytes, Device) {
  FAKE_BEGIN(false);
  std::strncpy(text, "Fake GPU", static_cast<size_t>(bytes));
  return kGood;
}

Code cuDeviceGetAttribute(int* value, int attribute, Device) {
  FAKE_BEGIN(false);
  switch (attribute) {
    case hone::cuda::kSmCount: *value = machine.gpu.sms; return kGood;
    case hone::cuda::kL2Bytes: *value = machine.gpu.l2; return kGood;
    case hone::cuda::kThreadsOfSm: *value = 2048; return kGood;
    case hone::cuda::kMajor: *value = machine.gpu.capability / 10; return kGood;
    case hone::cuda::kMinor: *value = machine.gpu.capability % 10; return kGood;
    case hone::cuda::kSharedOfSm: *value = 228 << 10; return kGood;
    case hone::cuda::kRegistersOfSm: *value = 65536; return kGood;
    case hone::cuda::kSharedOfBlock: *value = block_bytes(machine.gpu.capability); return kGood;
    case hone::cuda::kClockKhz: *value = 1980000; return kGood;
    case hone::cuda::kMemoryClockKhz: *value = 2619000; return kGood;
    case hone::cuda::kMemoryBusBits: *value = 5120; return kGood;
    default: return machine.fault(kInvalidValue, "an attribute that the fake does not have");
  }
}

Code cuDeviceTotalMem_v2(size_t* bytes, Device) {
  FAKE_BEGIN(false);
  *bytes = static_cast<size_t>(machine.gpu.memory);
  return kGood;
}

Code cuDevicePrimaryCtxRetain(Context* context, Device device) {
  FAKE_BEGIN(false);
  FakeContext& made = machine.of_device(device);
  ++made.holders;
  *context = reinterpret_cast<Context>(&made);
  return kGood;
}

Code cuDevicePrimaryCtxRelease_v2(Device device) {
  Machine& machine = Machine::get();
  const std::scoped_lock lock(machine.mutex);
  const Code begun = machine.begin(false);
  if (--machine.of_device(device).holders < 0)
    (void)machine.fault(kInvalidContext, "a context too many is released");
  return begun;
}

Code cuCtxSetCurrent(Context context) {
  FAKE_BEGIN(false);
  Machine::context = context;
  return kGood;
}

Code cuCtxEnablePeerAccess(Context of, unsigned flags) {
  FAKE_BEGIN(true);
  if (machine.known(of) == nullptr || of == Machine::context || flags != 0) return kInvalidContext;
  if (machine.gpu.refuses_peers) return kNotSupported;
  ++machine.counts.reached;
  return kGood;
}

Code cuCtxGetCurrent(Context* context) {
  *context = Machine::context;
  return kGood;
}

// ---- Memory ------------------------------------------------------------------------------------

Code cuMemGetInfo_v2(size_t* free, size_t* all) {
  FAKE_BEGIN(true);
  *all = static_cast<size_t>(machine.gpu.memory);
  *free = static_cast<size_t>(machine.gpu.memory - machine.known(Machine::context)->used);
  return kGood;
}

Code cuMemAlloc_v2(Address* memory, size_t bytes) {
  FAKE_BEGIN(true);
  ++machine.counts.allocations;
  return machine.allocate(bytes, *memory);
}

Code cuMemFree_v2(Address memory) {
  FAKE_RELEASE();
  const Code freed = machine.free(memory);
  return begun != kGood ? begun : freed;
}

Code cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream stream) {
  FAKE_BEGIN(true);
  std::byte* const target = machine.memory(to, bytes);
  if (target == nullptr) return bad_range(machine);
  return machine.enqueue(stream, [=] {
    std::memset(target, value, bytes);
    return kGood;
  });
}

Code cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream stream) {
  FAKE_BEGIN(true);
  std::byte* const target = machine.memory(to, bytes);
  if (target == nullptr) return bad_range(machine);
  return copy(machine, stream, [=, &machine] {
    std::memcpy(target, from, bytes);
    machine.counts.copied_to += static_cast<int64_t>(bytes);
    return kGood;
  });
}

Code cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream stream) {
  FAKE_BEGIN(true);
  const std::byte* const source = machine.memory(from, bytes);
  if (source == nullptr) return bad_range(machine);
  return copy(machine, stream, [=, &machine] {
    std::memcpy(to, source, bytes);
    machine.counts.copied_from += static_cast<int64_t>(bytes);
    return kGood;
  });
}

Code cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream stream) {
  FAKE_BEGIN(true);
  std::byte* const target = machine.memory(to, bytes);
  const std::byte* const source = machine.memory(from, bytes);
  if (target == nullptr || source == nullptr) return bad_range(machine);
  return copy(machine, stream, [=, &machine] {
    std::memmove(target, source, bytes);
    machine.counts.copied += static_cast<int64_t>(bytes);
    return kGood;
  });
}

Code cuMemcpyPeerAsync(Address to, Context to_context, Address from, Context from_context,
                       size_t bytes, Stream stream) {
  FAKE_BEGIN(true);
  if (machine.gpu.refuses_peers) return kNotSupported;
  std::byte* const target = machine.memory(to, bytes, to_context);
  const std::byte* const source = machine.memory(from, bytes, from_context);
  if (target == nullptr || source == nullptr) return bad_range(machine);
  return copy(machine, stream, [=, &machine] {
    std::memcpy(target, source, bytes);
    machine.counts.copied_to_peers += static_cast<int64_t>(bytes);
    return kGood;
  });
}

// ---- Code --------------------------------------------------------------------------------------

Code cuModuleLoadDataEx(Module* module, const void* code, unsigned, int*, void**) {
  FAKE_BEGIN(true);
  const std::string_view text(static_cast<const char*>(code));
  const bool is_text = text == hone::kDecidePtx;
  const uint64_t of_decide = hone::hash_string(hone::kDecidePtx);
  if (!is_text && !text.starts_with(kCubin))
    return machine.fault(kInvalidImage, "not a cubin of the fake");
  if (!is_text && machine.gpu.refuses_cubins && machine.counts.links == 0) return kInvalidImage;
  machine.counts.texts += is_text ? 1 : 0;
  auto* const made = new FakeModule;
  made->hash =
      is_text ? of_decide : std::stoull(std::string(text.substr(kCubin.size(), 16)), nullptr, 16);
  if (const auto known = machine.kernels.find(made->hash); known != machine.kernels.end())
    made->functions = known->second;
  if (made->hash == of_decide) made->functions[hone::kDecideFunction].decides = true;
  made->context = Machine::context;
  for (auto& [name, function] : made->functions) function.context = made->context;
  machine.modules.insert(made);
  *module = reinterpret_cast<Module>(made);
  return kGood;
}

Code cuModuleUnload(Module module) {
  FAKE_RELEASE();
  auto* const one = reinterpret_cast<FakeModule*>(module);
  if (!machine.modules.contains(one)) return machine.fault(kInvalidHandle, "no such module");
  if (begun == kGood && one->context != Machine::context) (void)foreign(machine, "a module");
  machine.modules.erase(one);
  delete one;
  return begun;
}

Code cuModuleGetFunction(Function* function, Module module, const char* name) {
  FAKE_BEGIN(true);
  auto* const one = reinterpret_cast<FakeModule*>(module);
  if (!machine.modules.contains(one)) return machine.fault(kInvalidHandle, "no such module");
  if (one->context != Machine::context) return foreign(machine, "a module");
  auto found = one->functions.find(name);
  if (found == one->functions.end()) {
    if (!machine.any || machine.kernels.contains(one->hash)) return kNotFound;
    found =
        one->functions.emplace(name, FakeFunction{.context = one->context, .backing = *machine.any})
            .first;
    found->second.backing.works *= 1 + static_cast<int64_t>(one->hash % 4);
  }
  *function = reinterpret_cast<Function>(&found->second);
  return kGood;
}

Code cuFuncSetAttribute(Function function, int attribute, int value) {
  FAKE_BEGIN(true);
  if (attribute != hone::cuda::kMaxDynamicShared || value < 0 ||
      value > block_bytes(machine.gpu.capability))
    return machine.fault(kInvalidValue, "a wrong attribute of a function");
  reinterpret_cast<FakeFunction*>(function)->shared_bytes = value;
  return kGood;
}

Code cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* base, const uint64_t* dims,
                            const uint64_t* strides, const uint32_t* box, const uint32_t* steps,
                            int interleave, int swizzle, int promotion, int fill) {
  FAKE_BEGIN(false);
  if (reinterpret_cast<uintptr_t>(map) % hone::kMapAlignment != 0)
    return machine.fault(kInvalidValue, "a map that is not aligned");
  if (interleave != 0 || swizzle != 3 || promotion < 0 || promotion > 3 || fill != 0)
    return machine.fault(kInvalidValue, "a map of a kind that the fake does not have");
  FakeMap made;
  made.type = type;
  made.address = reinterpret_cast<Address>(base);
  made.rank = rank;
  for (unsigned i = 0; i < std::min(rank, FakeMap::kMostDims); ++i) {
    if (dims[i] > UINT32_MAX || steps[i] != 1)
      return machine.fault(kInvalidValue, "a map with wrong dims");
    made.dims[i] = static_cast<uint32_t>(dims[i]);
    made.box[i] = box[i];
    if (i + 1 < rank) made.strides[i] = strides[i];
  }
  if (std::string wrong = fault_of_map(made); !wrong.empty())
    return machine.fault(kInvalidValue, std::move(wrong));
  std::memset(map, 0, hone::kMapBytes);
  std::memcpy(map, &made, sizeof made);
  return kGood;
}

Code cuLaunchKernelEx(const hone::cuda::LaunchConfig* config, Function function, void** parameters,
                      void** extra) {
  FAKE_BEGIN(true);
  const auto& kernel = *reinterpret_cast<const FakeFunction*>(function);
  if (kernel.context != Machine::context) return foreign(machine, "a kernel");
  const auto [grid_x, grid_y, grid_z] = config->grid;
  const int64_t threads = int64_t{config->block[0]} * config->block[1] * config->block[2];
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || threads == 0 || threads > 1024)
    return machine.fault(kInvalidValue, "a grid that there cannot be");
  if (config->attribute_count > 1 ||
      (config->attribute_count == 1 &&
       (config->attributes[0].id != hone::cuda::kMayBeginEarly || machine.gpu.capability < 90)))
    return machine.fault(kInvalidValue, "an attribute that the launch cannot have");
  const bool begins_early = config->attribute_count == 1 && config->attributes[0].truth == 1;
  if (begins_early && is_in_block(machine, config->stream))
    return machine.fault(kInvalidValue, "a kernel begins early in the block of a condition");
  if (config->shared_bytes > kernel.shared_bytes)
    return machine.fault(kInvalidValue, "more shared memory than the function may have");
  if (extra != nullptr) return machine.fault(kInvalidValue, "extra parameters");
  if (kernel.decides) return decide_later(machine, config->stream, parameters);
  const auto before = static_cast<size_t>(kernel.backing.buffers + kernel.backing.symbols + 1);
  const std::vector<hone::GpuMap>& maps = kernel.backing.maps;
  std::vector<uint64_t> words;
  for (size_t i = 0; i < before + maps.size() + 2; ++i)
    if (i < before || i >= before + maps.size())
      words.push_back(*static_cast<const uint64_t*>(parameters[i]));
  for (size_t m = 0; m < maps.size(); ++m)
    if (std::string wrong = fault_of_parameter(parameters[before + m], maps[m],
                                               words[static_cast<size_t>(maps[m].buffer)]);
        !wrong.empty())
      return machine.fault(kInvalidValue, std::move(wrong));
  const Work work = [&machine, kernel, words, all = threads * grid_x] {
    return machine.run(kernel, words, all);
  };
  return begins_early ? machine.enqueue_early(config->stream, kernel, work)
                      : machine.enqueue(config->stream, work);
}

Code cuLinkCreate_v2(unsigned options, int* names, void** values, Link* link) {
  FAKE_BEGIN(true);
  auto* const made = new FakeLink;
  for (unsigned i = 0; i < options; ++i) {
    if (names[i] == hone::cuda::kErrorLog) made->log = static_cast<char*>(values[i]);
    if (names[i] == hone::cuda::kErrorLogBytes)
      made->log_bytes = reinterpret_cast<size_t>(values[i]);
    if (names[i] == hone::cuda::kTarget) made->target = reinterpret_cast<int64_t>(values[i]);
  }
  machine.links.insert(made);
  ++machine.counts.links;
  machine.counts.most_links =
      std::max(machine.counts.most_links, static_cast<int64_t>(machine.links.size()));
  *link = reinterpret_cast<Link>(made);
  return kGood;
}

// Refuses a text that has the word "refused", that of a kernel with this fate, and one for a chip
// that the target is not.
Code cuLinkAddData_v2(Link link, int type, void* data, size_t bytes, const char*, unsigned, int*,
                      void**) {
  FAKE_BEGIN(true);
  auto& one = *reinterpret_cast<FakeLink*>(link);
  const auto* const text = static_cast<const char*>(data);
  if (type != hone::cuda::kLinkPtx || bytes == 0 || text[bytes - 1] != '\0')
    return machine.fault(kInvalidValue, "PTX without a zero at its end");
  one.ptx = text;
  const bool is_exact = one.ptx.find(".target sm_90a") != std::string::npos;
  const bool is_refused = one.ptx.find("refused") != std::string::npos ||
                          (is_exact && one.target != hone::cuda::kExactTarget + 90) ||
                          machine.is_refused(hone::hash_string(one.ptx));
  if (!is_refused) return kGood;
  if (one.log != nullptr) std::strncpy(one.log, "ptxas error: line 1", one.log_bytes);
  return kInvalidPtx;
}

Code cuLinkComplete(Link link, void** cubin, size_t* bytes) {
  Machine::get().wait_for_links();
  FAKE_BEGIN(true);
  auto& one = *reinterpret_cast<FakeLink*>(link);
  one.cubin = cubin_of(hone::hash_string(one.ptx));
  *cubin = one.cubin.data();
  *bytes = one.cubin.size();
  return kGood;
}

Code cuLinkDestroy(Link link) {
  FAKE_RELEASE();
  auto* const one = reinterpret_cast<FakeLink*>(link);
  if (machine.links.erase(one) == 0) return machine.fault(kInvalidHandle, "no such link");
  delete one;
  return begun;
}

// ---- Streams, events, graphs -------------------------------------------------------------------

Code cuStreamCreate(Stream* stream, unsigned) {
  FAKE_BEGIN(true);
  auto* const made = new FakeStream{.context = Machine::context};
  machine.streams.insert(made);
  *stream = reinterpret_cast<Stream>(made);
  return kGood;
}

Code cuStreamDestroy_v2(Stream stream) {
  FAKE_RELEASE();
  auto* const one = reinterpret_cast<FakeStream*>(stream);
  if (!machine.streams.contains(one)) return machine.fault(kInvalidHandle, "no such stream");
  if (begun == kGood && one->context != Machine::context) (void)foreign(machine, "a stream");
  if (!one->queue.empty()) (void)machine.fault(kInvalidHandle, "a stream ends with work to do");
  machine.streams.erase(one);
  delete one;
  return begun;
}

Code cuStreamSynchronize(Stream stream) {
  FAKE_BEGIN(true);
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr) return machine.fault(kInvalidHandle, "no such stream");
  if (one->captured != nullptr)
    return machine.fault(kCaptureUnsupported, "a captured stream is waited for");
  return machine.drain(*one);
}

Code cuStreamQuery(Stream stream) {
  FAKE_BEGIN(true);
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr || one->captured != nullptr)
    return machine.fault(kInvalidHandle, "a stream that cannot be asked");
  return machine.poll(*one);
}

Code cuStreamBeginCapture_v2(Stream stream, int) {
  FAKE_BEGIN(true);
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr || stream == nullptr || one->captured != nullptr)
    return machine.fault(kInvalidHandle, "a stream that cannot be captured");
  one->captured = new FakeGraph{.context = Machine::context};
  return kGood;
}

Code cuStreamBeginCaptureToGraph(Stream stream, Graph graph, const hone::cuda::Node*, const void*,
                                 size_t count, int) {
  FAKE_BEGIN(true);
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr || stream == nullptr || one->captured != nullptr)
    return machine.fault(kInvalidHandle, "a stream that cannot be captured");
  for (const auto& body : machine.bodies)
    if (const auto known = body.lock(); reinterpret_cast<Graph>(known.get()) == graph) {
      if (count != 0 || !known->nodes.empty())
        return machine.fault(kInvalidValue, "a block is filled again");
      one->captured = known.get();
      return kGood;
    }
  return machine.fault(kInvalidHandle, "a block that no condition has");
}

Code cuStreamGetCaptureInfo_v2(Stream stream, int* status, uint64_t* number, Graph* graph,
                               const hone::cuda::Node** last, size_t* count) {
  FAKE_BEGIN(true);
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr || one->captured == nullptr)
    return machine.fault(kInvalidHandle, "a stream that is not captured");
  *status = 1;
  *number = 1;
  *graph = reinterpret_cast<Graph>(one->captured);
  if (last == nullptr && count == nullptr) return kGood;
  if (one->captured->is_behind_early)
    return machine.fault(kInvalidValue, "what is asked for does not tell all of a node's edges");
  one->captured->last = reinterpret_cast<hone::cuda::Node>(one->captured->nodes.size());
  *last = &one->captured->last;
  *count = one->captured->nodes.empty() ? 0 : 1;
  return kGood;
}

Code cuStreamUpdateCaptureDependencies(Stream stream, hone::cuda::Node* nodes, size_t count,
                                       unsigned flags) {
  FAKE_BEGIN(true);
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr || one->captured == nullptr)
    return machine.fault(kInvalidHandle, "a stream that is not captured");
  if (count != 1 || reinterpret_cast<size_t>(nodes[0]) != one->captured->nodes.size() ||
      flags != hone::cuda::kSetDependencies)
    return machine.fault(kInvalidValue, "a stream that does not go on behind the last node");
  one->captured->has_aside = false;
  return kGood;
}

Code cuStreamEndCapture(Stream stream, Graph* graph) {
  FAKE_RELEASE();
  FakeStream* const one = machine.stream(stream);
  if (one == nullptr || one->captured == nullptr)
    return machine.fault(kInvalidHandle, "a stream that is not captured");
  FakeGraph* const made = std::exchange(one->captured, nullptr);
  if (!made->is_body && begun != kGood) delete made;
  if (begun != kGood) return begun;
  if (!made->is_body) machine.graphs.insert(made);
  *graph = reinterpret_cast<Graph>(made);
  return kGood;
}

Code cuGraphConditionalHandleCreate(hone::cuda::Condition* condition, Graph, Context context,
                                    unsigned, unsigned flags) {
  FAKE_BEGIN(true);
  if (flags != 0 || context != Machine::context)
    return machine.fault(kInvalidValue, "a condition of a wrong kind");
  *condition = machine.conditions.size() + 1;
  machine.conditions[*condition] = std::nullopt;
  return kGood;
}

Code cuGraphAddNode(hone::cuda::Node* node, Graph graph, const hone::cuda::Node* behind,
                    size_t count, hone::cuda::ConditionalNode* parameters) {
  FAKE_BEGIN(true);
  using hone::cuda::ConditionalNode;
  auto& into = *reinterpret_cast<FakeGraph*>(graph);
  const bool is_behind_all =
      into.nodes.empty() ? count == 0
                         : count == 1 && reinterpret_cast<size_t>(behind[0]) == into.nodes.size();
  if (!is_behind_all || into.has_aside)
    return machine.fault(kInvalidValue, "a node that is not behind the last one");
  if (parameters->type != ConditionalNode::kType || parameters->count != 1 ||
      parameters->kind < ConditionalNode::kIf || parameters->kind > ConditionalNode::kWhile ||
      parameters->context != Machine::context)
    return machine.fault(kInvalidValue, "a node of a wrong kind");
  if (!machine.conditions.contains(parameters->condition))
    return machine.fault(kInvalidHandle, "no such condition");
  auto made = std::make_shared<FakeConditional>();
  made->condition = parameters->condition;
  made->repeats = parameters->kind == ConditionalNode::kWhile;
  made->body = std::make_shared<FakeGraph>(FakeGraph{.context = into.context, .is_body = true});
  made->given = reinterpret_cast<Graph>(made->body.get());
  parameters->graphs = &made->given;
  machine.bodies.push_back(made->body);
  into.nodes.push_back({.conditional = std::move(made)});
  into.has_aside = true;
  *node = reinterpret_cast<hone::cuda::Node>(into.nodes.size());
  return kGood;
}

Code cuGraphInstantiateWithFlags(GraphRun* run, Graph graph, unsigned long long) {
  FAKE_BEGIN(true);
  auto* const from = reinterpret_cast<FakeGraph*>(graph);
  if (!machine.graphs.contains(from)) return machine.fault(kInvalidHandle, "no such graph");
  const auto is_conditional = [](const FakeNode& node) { return node.conditional != nullptr; };
  if (machine.gpu.refuses_conditions && std::ranges::any_of(from->nodes, is_conditional))
    return kNotSupported;
  auto* const made = new FakeGraph(*from);
  machine.graph_runs.insert(made);
  ++machine.counts.graphs;
  *run = reinterpret_cast<GraphRun>(made);
  return kGood;
}

Code cuGraphLaunch(GraphRun run, Stream stream) {
  FAKE_BEGIN(true);
  auto* const one = reinterpret_cast<FakeGraph*>(run);
  if (!machine.graph_runs.contains(one)) return machine.fault(kInvalidHandle, "no such graph");
  if (one->context != Machine::context) return foreign(machine, "a graph");
  return machine.launch(stream, *one);
}

Code cuGraphDestroy(Graph graph) {
  FAKE_RELEASE();
  auto* const one = reinterpret_cast<FakeGraph*>(graph);
  if (machine.graphs.erase(one) == 0) return machine.fault(kInvalidHandle, "no such graph");
  delete one;
  return begun;
}

Code cuGraphExecDestroy(GraphRun run) {
  FAKE_RELEASE();
  auto* const one = reinterpret_cast<FakeGraph*>(run);
  if (machine.graph_runs.erase(one) == 0) return machine.fault(kInvalidHandle, "no such graph");
  delete one;
  return begun;
}

Code cuEventCreate(Event* event, unsigned) {
  FAKE_BEGIN(true);
  auto* const made = new FakeEvent{.context = Machine::context};
  machine.events.insert(made);
  *event = reinterpret_cast<Event>(made);
  return kGood;
}

Code cuEventDestroy_v2(Event event) {
  FAKE_RELEASE();
  auto* const one = reinterpret_cast<FakeEvent*>(event);
  if (!machine.events.contains(one)) return machine.fault(kInvalidHandle, "no such event");
  if (begun == kGood && one->context != Machine::context) (void)foreign(machine, "an event");
  machine.events.erase(one);
  delete one;
  return begun;
}

Code cuEventRecord(Event event, Stream stream) {
  FAKE_BEGIN(true);
  auto* const one = reinterpret_cast<FakeEvent*>(event);
  if (!machine.events.contains(one)) return machine.fault(kInvalidHandle, "no such event");
  if (one->context != Machine::context) return foreign(machine, "an event");
  one->stream = machine.stream(stream);
  one->is_recorded = false;
  return machine.enqueue(stream, [one, &machine] {
    one->is_recorded = true;
    one->at = machine.works;
    return kGood;
  });
}

Code cuEventSynchronize(Event event) {
  FAKE_BEGIN(true);
  auto* const one = reinterpret_cast<FakeEvent*>(event);
  if (!machine.events.contains(one) || one->stream == nullptr)
    return machine.fault(kInvalidHandle, "an event that was not recorded");
  return machine.drain(*one->stream);
}

// A microsecond for each piece of work.
Code cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  FAKE_BEGIN(true);
  const auto& first = *reinterpret_cast<const FakeEvent*>(from);
  const auto& last = *reinterpret_cast<const FakeEvent*>(to);
  if (!first.is_recorded || !last.is_recorded)
    return machine.fault(kInvalidHandle, "a time between events that have not come");
  const int64_t tick = machine.gpu.tick;
  *milliseconds = 1e-3F * static_cast<float>((last.at - first.at) / tick * tick);
  return kGood;
}

}  // extern "C"
