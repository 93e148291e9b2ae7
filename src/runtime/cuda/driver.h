#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

// NVIDIA's driver, opened at run time: hone needs neither its headers nor a toolkit to be built.

namespace hone {

namespace cuda {

// The types of the driver's functions, as its binary interface has them.
using Code = int;  // 0: good
using Device = int;
using Address = uint64_t;  // of memory of the device
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphRun = struct GraphRunTag*;  // an instantiated graph
using Node = struct NodeTag*;          // of a graph
using Condition = uint64_t;            // a number that a conditional node looks at
using Link = struct LinkTag*;

// How a kernel is launched. An attribute lets it begin before the kernel ahead of it has ended.
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  union {
    int truth = 0;
    char bytes[64];
  };
};
inline constexpr int kMayBeginEarly = 6;
inline constexpr int kEarlyVersion = 12030;  // from here on graphs let kernels begin early
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

inline constexpr Code kGood = 0, kNoMemory = 2, kNoDevice = 100, kNotReady = 600;

// Attributes of a device.
inline constexpr int kSmCount = 16, kL2Bytes = 38, kThreadsOfSm = 39, kMajor = 75, kMinor = 76,
                     kSharedOfSm = 81, kRegistersOfSm = 82, kSharedOfBlock = 97, kClockKhz = 13,
                     kMemoryClockKhz = 36, kMemoryBusBits = 37;
inline constexpr int kMaxDynamicShared = 8;  // an attribute of a function: bytes
inline constexpr unsigned kNotWithNull = 1;  // a stream that does not wait for the null stream
inline constexpr int kCaptureOfThread = 1;   // other threads go on as they like
inline constexpr int kLinkPtx = 1;
// Tensor maps: the types of elements, boxes whose rows of 128 bytes are swizzled, and promotion of
// what a box takes from memory to 128 bytes.
inline constexpr int kMapF16 = 6, kMapF32 = 7, kMapBf16 = 9;
inline constexpr int kNotInterleaved = 0, kSwizzle128 = 3, kPromote128 = 2, kFillZeros = 0;
// In a captured stream work that follows comes behind these nodes alone.
inline constexpr unsigned kSetDependencies = 1;

// A node that runs another graph once, or again and again, while a condition is not 0. The driver
// gives the graph to be filled.
struct ConditionalNode {
  static constexpr int kType = 13, kIf = 0, kWhile = 1;

  int type = kType;
  int zeros[3] = {};
  Condition condition = 0;
  int kind = kIf;
  unsigned count = 1;  // of graphs
  Graph* graphs = nullptr;
  Context context = nullptr;
  uint64_t more_zeros[26] = {};
};
static_assert(sizeof(ConditionalNode) == 256);

// Options of the driver's compiler: where its errors go, how many bytes there are, and the chip.
inline constexpr int kErrorLog = 5, kErrorLogBytes = 6, kTarget = 9;
inline constexpr int64_t kExactTarget = 1 << 16;  // and ten times the capability
inline constexpr int64_t kFreeShared = 48 << 10;  // more has to be asked for

// Every function that hone calls: the name under which the library has it, and its parameters.
#define HONE_CUDA_FUNCTIONS(X)                                                                     \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDriverGetVersion, (int* version))                                                            \
  X(cuGetErrorName, (Code code, const char** text))                                                \
  X(cuGetErrorString, (Code code, const char** text))                                              \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (Device * device, int number))                                                    \
  X(cuDeviceGetName, (char* text, int bytes, Device device))                                       \
  X(cuDeviceGetAttribute, (int* value, int attribute, Device device))                              \
  X(cuDeviceTotalMem_v2, (size_t* bytes, Device device))                                           \
  X(cuDevicePrimaryCtxRetain, (Context * context, Device device))                                  \
  X(cuDevicePrimaryCtxRelease_v2, (Device device))                                                 \
  X(cuCtxGetCurrent, (Context * context))                                                          \
  X(cuCtxSetCurrent, (Context context))                                                            \
  X(cuCtxEnablePeerAccess, (Context of, unsigned flags))                                           \
  X(cuMemGetInfo_v2, (size_t* free, size_t* all))                                                  \
  X(cuMemAlloc_v2, (Address * memory, size_t bytes))                                               \
  X(cuMemFree_v2, (Address memory))                                                                \
  X(cuMemsetD8Async, (Address to, unsigned char value, size_t bytes, Stream stream))               \
  X(cuMemcpyHtoDAsync_v2, (Address to, const void* from, size_t bytes, Stream stream))             \
  X(cuMemcpyDtoHAsync_v2, (void* to, Address from, size_t bytes, Stream stream))                   \
  X(cuMemcpyDtoDAsync_v2, (Address to, Address from, size_t bytes, Stream stream))                 \
  X(cuMemcpyPeerAsync, (Address to, Context to_context, Address from, Context from_context,        \
                        size_t bytes, Stream stream))                                              \
  X(cuModuleLoadDataEx,                                                                            \
    (Module * module, const void* code, unsigned options, int* names, void** values))              \
  X(cuModuleUnload, (Module module))                                                               \
  X(cuModuleGetFunction, (Function * function, Module module, const char* name))                   \
  X(cuFuncSetAttribute, (Function function, int attribute, int value))                             \
  X(cuTensorMapEncodeTiled, (void* map, int type, unsigned rank, void* base, const uint64_t* dims, \
                             const uint64_t* strides, const uint32_t* box, const uint32_t* steps,  \
                             int interleave, int swizzle, int promotion, int fill))                \
  X(cuStreamCreate, (Stream * stream, unsigned flags))                                             \
  X(cuStreamDestroy_v2, (Stream stream))                                                           \
  X(cuStreamSynchronize, (Stream stream))                                                          \
  X(cuStreamQuery, (Stream stream))                                                                \
  X(cuStreamBeginCapture_v2, (Stream stream, int mode))                                            \
  X(cuStreamEndCapture, (Stream stream, Graph * graph))                                            \
  X(cuLaunchKernelEx,                                                                              \
    (const LaunchConfig* config, Function function, void** parameters, void** extra))              \
  X(cuGraphInstantiateWithFlags, (GraphRun * run, Graph graph, unsigned long long flags))          \
  X(cuGraphLaunch, (GraphRun run, Stream stream))                                                  \
  X(cuGraphDestroy, (Graph graph))                                                                 \
  X(cuGraphExecDestroy, (GraphRun run))                                                            \
  X(cuEventCreate, (Event * event, unsigned flags))                                                \
  X(cuEventDestroy_v2, (Event event))                                                              \
  X(cuEventRecord, (Event event, Stream stream))                                                   \
  X(cuEventSynchronize, (Event event))                                                             \
  X(cuEventElapsedTime, (float* milliseconds, Event from, Event to))                               \
  X(cuLinkCreate_v2, (unsigned options, int* names, void** values, Link* link))                    \
  X(cuLinkAddData_v2, (Link link, int type, void* data, size_t bytes, const char* name,            \
                       unsigned options, int* names, void** values))                               \
  X(cuLinkComplete, (Link link, void** cubin, size_t* bytes))                                      \
  X(cuLinkDestroy, (Link link))

// Functions of conditional nodes, which older drivers lack.
#define HONE_CUDA_CONDITION_FUNCTIONS(X)                                                       \
  X(cuGraphConditionalHandleCreate,                                                            \
    (Condition * condition, Graph graph, Context context, unsigned value, unsigned flags))     \
  X(cuGraphAddNode,                                                                            \
    (Node * node, Graph graph, const Node* behind, size_t count, ConditionalNode* parameters)) \
  X(cuStreamGetCaptureInfo_v2, (Stream stream, int* status, uint64_t* number, Graph* graph,    \
                                const Node** last, size_t* count))                             \
  X(cuStreamUpdateCaptureDependencies,                                                         \
    (Stream stream, Node * nodes, size_t count, unsigned flags))                               \
  X(cuStreamBeginCaptureToGraph,                                                               \
    (Stream stream, Graph graph, const Node* behind, const void* edges, size_t count, int mode))

struct Functions {
#define HONE_CUDA_FUNCTION(name, parameters) Code(*name) parameters = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FUNCTION)
  HONE_CUDA_CONDITION_FUNCTIONS(HONE_CUDA_FUNCTION)
#undef HONE_CUDA_FUNCTION
};

}  // namespace cuda

inline constexpr std::string_view kCudaLibrary = "libcuda.so.1";
// The way out of all that a GPU cannot do, for every face.
inline constexpr std::string_view kCpuRunsIt = "if no GPU is asked for, the CPU runs it";
inline constexpr int kMinCudaVersion = 12000;     // the first one whose compiler takes PTX 8.0
inline constexpr int kConditionsVersion = 12040;  // whose conditional nodes may have copies

// The driver. Its library stays open for the rest of the process: it has threads of its own.
class CudaDriver {
 public:
  // Unsupported if the library is absent, lacks a function or is older than kMinCudaVersion, or if
  // the system has no driver or no GPU.
  static Result<std::shared_ptr<const CudaDriver>> open(const std::string& library);

  // An error with the driver's own reason. `doing` completes "while hone ...".
  Status check(cuda::Code code, std::string_view doing) const {
    return code == cuda::kGood ? Status() : Status(failed(code, doing));
  }
  const cuda::Functions& call() const { return functions_; }
  int version() const { return version_; }  // 13000 is CUDA 13.0
  int devices() const { return devices_; }
  bool has_conditions() const { return has_conditions_; }  // conditional nodes of graphs

 private:
  CudaDriver() = default;
  Status find_functions(void* library, const std::string& name);
  Status start();
  Error failed(cuda::Code code, std::string_view doing) const;

  cuda::Functions functions_;
  int version_ = 0;
  int devices_ = 0;
  bool has_conditions_ = false;
};

std::string cuda_version_text(int version);  // "CUDA 13.0"

}  // namespace hone
