#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/instructions.h"
#include "tensor/tensor.h"
#include "transport/spmd.h"

// An Image is what the runtime executes: a Program for one set of sizes, flattened, with machine
// code. Plain data: the loader checks it (executable.h), so a fault of the compiler cannot reach
// foreign memory.

namespace hone {

namespace image {

// A loop moves the place: address += stride * the loop's trip.
struct Step {
  uint32_t loop = 0;  // Repeat::loop
  int64_t stride = 0;
  bool operator==(const Step&) const = default;
};

// Where the bytes of a buffer lie; steps move it with the loops around.
struct Place {
  enum class Region : uint8_t { input, output, constant, arena };
  Region region = Region::arena;
  uint32_t index = 0;  // of inputs, outputs, constants
  int64_t offset = 0;  // bytes
  int64_t bytes = 0;
  std::vector<Step> steps = {};
  bool operator==(const Place&) const = default;
};

struct Phase {
  std::string symbol;  // of the function in the kernel's object
  int64_t trips = 1;
  bool is_parallel = false;  // its trips are divided among the threads
};

struct Kernel {
  std::string name;                           // for profiles and errors
  std::shared_ptr<const std::string> object;  // an ELF relocatable; kernels may share one
  std::vector<Phase> phases;
  int64_t scratch_bytes = 0;  // per thread
  Instructions needs = {};
};

struct Command;
using Block = std::vector<Command>;

struct Launch {
  uint32_t kernel = 0;
  std::vector<Place> buffers;
  std::vector<int64_t> symbols = {};
};
struct Copy {
  Place from;
  Place to;
};
struct Branch {
  Place condition;  // one byte
  Block on_true;
  Block on_false;
};
// Runs `test`, ends if the byte at `condition` is 0, runs `body`, and again.
struct While {
  Block test;
  Place condition;
  Block body;
};
struct Repeat {
  uint32_t loop = 0;  // its number: each Repeat has its own
  int64_t trips = 0;
  bool reverse = false;  // trips count down to 0
  Block body;
};
// Begins a collective, which reads `from` and writes `to` until its wait.
struct Start {
  uint32_t number = 0;  // below Image::collectives: each Start has its own
  SpmdCollective collective;
  DType dtype = DType::f32;
  Place from;
  Place to;
  std::string result = {};  // the name of what it makes
};
// Begin a message; `number` as a Start has it.
struct Send {
  uint32_t number = 0;
  Message message;
  Place from;
  std::string value = {};
};
struct Receive {
  uint32_t number = 0;
  Message message;
  Place to;
  std::string value = {};
};
struct Wait {
  uint32_t number = 0;  // of a Start, a Send or a Receive
};
// Writes the number of the device, 8 bytes.
struct DeviceIndex {
  Place to;
};
struct Command {
  std::string name;
  std::variant<Launch, Copy, Branch, While, Repeat, Start, Wait, DeviceIndex, Send, Receive> kind;
};

struct Port {
  std::string name;
  Type type;  // static
};

// The caller may give the output the memory of this input, its donor. A copy, which then does
// nothing, comes before the output changes; nothing reads the input after that.
struct Donation {
  uint32_t input = 0;
  uint32_t output = 0;
};

}  // namespace image

struct Image {
  std::string name;
  int64_t threads = 1;
  std::vector<image::Port> inputs = {};
  std::vector<image::Port> outputs = {};
  std::vector<image::Donation> donations = {};
  std::vector<Tensor> constants = {};
  std::vector<image::Kernel> kernels = {};
  image::Block commands = {};  // one after another
  int64_t arena_bytes = 0;
  uint32_t loops = 0;              // numbers of Repeats are below
  uint32_t collectives = 0;        // numbers of Starts, Sends and Receives are below
  bool flushes_denormals = false;  // every run does (RunOptions::flush_denormals)
};

}  // namespace hone
