#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/device_programs.h"
#include "runtime/cuda/gpu_kernel.h"
#include "session/face.h"
#include "session/native.h"
#include "target/system.h"

// Texts of programs of devices (docs/formats/program-text.md), as a user names them.

namespace hone {

// True if a file that begins so is such a text.
bool begins_like_programs(std::string_view beginning);
// The error of whoever takes a model, and no programs.
Error are_programs(std::string_view name);

// Verified, and of static sizes. `where` names the text in errors.
Result<DevicePrograms> parse_programs(std::string_view text, const std::string& where);
Result<DevicePrograms> load_programs(const std::string& path);

// The name of an input or an output of one of several devices: "x@1"; of a single one: "x".
std::string name_on(std::string_view port, size_t device, size_t devices);
// A graph without nodes, whose inputs are those of device 0, then those of device 1, and so on.
Graph signature_of(const DevicePrograms& programs, int32_t devices);
// The names of the outputs, in that order.
std::vector<std::string> output_names(const DevicePrograms& programs, int32_t devices);
// The program of each device, as a position among all.
std::vector<uint32_t> program_of_each(const DevicePrograms& programs, int32_t devices);

// Proves that the devices do not wait for each other for ever and, with a system, that each of its
// devices has the memory that it needs. The text is a table with the memory of each program.
Result<std::string> proofs(const DevicePrograms& programs, int32_t devices, const System* system);

// The code of a program; `gpu` is that of a GpuImage, and empty if the target is a CPU.
struct ProgramCode {
  Image image;
  std::vector<GpuKernel> gpu = {};
};
// The code of each program, by the target, the device and the cache of the options.
Result<std::vector<ProgramCode>> codes_of(const DevicePrograms& programs,
                                          const NativeOptions& options, const Face& face = {});
// An image of each program. The target is a CPU.
Result<std::vector<Image>> images_of(const DevicePrograms& programs, const NativeOptions& options,
                                     const Face& face = {});

// One run by the interpreter, each device in a thread of its own. The devices were proved not to
// wait for ever.
Result<std::vector<Tensor>> interpret(const DevicePrograms& programs, int32_t devices,
                                      std::span<const Tensor> inputs, int64_t max_bytes,
                                      const Face& face = {});

}  // namespace hone
