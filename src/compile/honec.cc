#include "compile/honec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked_math.h"
#include "base/cpu_needs.h"
#include "base/file.h"
#include "compile/honec_values.h"
#include "compile/weight_pool.h"
#include "runtime/honec_layout.h"

namespace hone {

namespace {

using honec::Kind;
using honec::Values;
using image::Place;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The ports of a model.
std::vector<Symbol> symbols_of(const HonecModel& model) {
  OpenImage ports;
  ports.image.inputs = model.inputs;
  ports.image.outputs = model.outputs;
  return hone::symbols_of(ports);
}

Kind kind_of(const HonecProgram& program) {
  if (program.capability == 0) return Kind::program;
  const bool is_exact = std::ranges::any_of(program.gpu, &GpuKernel::is_exact);
  return is_exact ? Kind::exact_gpu_program : Kind::gpu_program;
}

// Objects or weights, each once, in the order in which they are met.
struct Pieces {
  std::vector<std::string_view> all;

  void write(Values& out) const {
    out.count(all.size());
    for (std::string_view piece : all) {
      out.count(piece.size());
      out.number(static_cast<int64_t>(hash_string(piece)));
    }
  }
};

class HonecWriter {
 public:
  Result<HonecBytes> write(const HonecModel& model, std::span<const HonecProgram> programs,
                           std::string_view version) {
    HONE_CHECK(!programs.empty(), "no programs");
    constexpr uint32_t kOthers = 5;  // sections beside those of programs
    if (programs.size() + kOthers > honec::kMaxSections)
      return unsupported("the model has {} programs, but a compiled file holds at most {}",
                         programs.size(), honec::kMaxSections - kOthers);
    std::vector<std::string> texts;
    for (const HonecProgram& program : programs) texts.push_back(HONE_TRY(text_of(program)));
    // Before the metadata, which lists all objects and weights.
    const std::string cubins = text_of(model.cubins);
    const std::string mesh = model.mesh ? text_of(*model.mesh, model.constants) : "";
    Values metadata;
    metadata.text(model.name);
    metadata.text(version);
    metadata.symbols(symbols_of(model));
    metadata.ports(model.inputs);
    metadata.ports(model.outputs);
    objects_.write(metadata);
    weights_.write(metadata);
    sections_.push_back({Kind::metadata, {keep(metadata.take())}});
    if (model.segments)
      sections_.push_back({Kind::segments, {keep(HONE_TRY(honec::text_of(*model.segments)))}});
    if (model.division)
      sections_.push_back({Kind::division, {keep(text_of(*model.division) + mesh)}});
    for (size_t i = 0; i < programs.size(); ++i)
      sections_.push_back({kind_of(programs[i]), {keep(std::move(texts[i]))}});
    if (!model.cubins.empty()) sections_.push_back({Kind::cubins, {keep(cubins)}});
    sections_.push_back({Kind::code, padded(objects_)});
    sections_.push_back({Kind::weights, padded(weights_)});
    HONE_TRY(lay_out(model.mesh.has_value()));
    return std::move(out_);
  }

 private:
  struct Part {
    Kind kind;
    std::vector<std::string_view> pieces;
  };

  std::string_view keep(std::string text) { return out_.made.emplace_back(std::move(text)); }
  std::string_view zeros(int64_t from, int64_t to) {
    return keep(std::string(static_cast<size_t>(to - from), '\0'));
  }

  std::vector<std::string_view> padded(const Pieces& pieces) {
    std::vector<std::string_view> all;
    int64_t end = 0;
    for (std::string_view piece : pieces.all) {
      const int64_t offset = round_up(end, honec::kAlignment);
      if (offset > end) all.push_back(zeros(end, offset));
      all.push_back(piece);
      end = offset + static_cast<int64_t>(piece.size());
    }
    return all;
  }

  Status lay_out(bool has_mesh) {
    const size_t table_bytes = sections_.size() * sizeof(honec::Section);
    std::string& head = out_.made.emplace_back(sizeof(honec::Header) + table_bytes, '\0');
    out_.pieces.emplace_back();  // the head, when it is whole
    auto end = static_cast<int64_t>(head.size());
    std::vector<honec::Section> table;
    for (const auto& [kind, pieces] : sections_) {
      const int64_t offset = round_up(end, honec::alignment(kind));
      if (offset > end) out_.pieces.push_back(zeros(end, offset));
      int64_t bytes = 0;
      for (std::string_view piece : pieces) {
        bytes += static_cast<int64_t>(piece.size());
        out_.pieces.push_back(piece);
      }
      if (kind != Kind::weights && bytes > honec::kMaxSectionBytes)
        return over_limit("a compiled model has at most {} bytes of code, and of commands",
                          honec::kMaxSectionBytes);
      table.push_back({.kind = static_cast<uint32_t>(kind),
                       .offset = static_cast<uint64_t>(offset),
                       .bytes = static_cast<uint64_t>(bytes),
                       .checksum = kind == Kind::weights ? 0 : checksum(pieces)});
      end = offset + bytes;
    }
    const auto has = [&](Kind kind) {
      return std::ranges::find(sections_, kind, &Part::kind) != sections_.end();
    };
    honec::Header header = {.version = has_mesh                       ? honec::kMeshVersion
                                       : has(Kind::cubins)            ? honec::kCubinVersion
                                       : has(Kind::exact_gpu_program) ? honec::kExactGpuVersion
                                       : has(Kind::gpu_program)       ? honec::kGpuVersion
                                                                      : honec::kVersion,
                            .sections = static_cast<uint32_t>(table.size()),
                            .file_bytes = static_cast<uint64_t>(end)};
    std::memcpy(header.magic, honec::kMagic, sizeof header.magic);
    header.checksum = honec::header_checksum(header, std::as_bytes(std::span(table)));
    std::memcpy(head.data(), &header, sizeof header);
    std::memcpy(head.data() + sizeof header, table.data(), table_bytes);
    out_.pieces.front() = head;
    return {};
  }

  static uint64_t checksum(std::span<const std::string_view> pieces) {
    if (pieces.size() == 1) return hash_string(pieces[0]);
    std::string whole;
    for (std::string_view piece : pieces) whole += piece;
    return hash_string(whole);
  }

  std::string text_of(std::span<const PtxCubin> cubins) {
    Values out;
    out.count(cubins.size());
    for (const PtxCubin& one : cubins) {
      out.count(object(one.ptx));
      out.number(one.capability);
      out.number(one.maker);
      out.text(one.bytes);
    }
    return out.take();
  }

  static std::string text_of(const BatchDivision& division) {
    Values out;
    out.number(division.rows);
    for (const std::vector<int>* dims : {&division.inputs, &division.outputs}) {
      out.count(dims->size());
      for (int dim : *dims) out.number(dim);
    }
    out.count(division.shares.size());
    for (const BatchDivision::Share& share : division.shares)
      for (int64_t number : {share.first, share.count, int64_t{share.code}}) out.number(number);
    return out.take();
  }

  std::string text_of(const MeshDivision& mesh, std::span<const Tensor> constants) {
    Values out;
    out.count(mesh.axes.size());
    for (const MeshDivision::Axis& axis : mesh.axes) {
      out.text(axis.name);
      out.number(axis.devices);
    }
    out.count(constants.size());
    for (const Tensor& constant : constants) {
      out.count(weight(constant));
      out.static_type(constant.type());
    }
    for (const std::vector<MeshPort>* ports : {&mesh.inputs, &mesh.outputs})
      for (const MeshPort& port : *ports) {
        out.count(port.dims.size());
        for (const std::vector<MeshPort::Part>& parts : port.dims) {
          out.count(parts.size());
          for (const MeshPort::Part& part : parts) {
            out.number(part.divisor);
            out.number(part.size);
          }
        }
      }
    return out.take();
  }

  // ---- Programs --------------------------------------------------------------------------------

  Result<std::string> text_of(const HonecProgram& program) {
    const Image& image = program.pattern();
    Values out;
    if (program.capability != 0) out.number(program.capability);
    out.number(program.unit);
    const Instructions needs = needs_of(image);
    out.text(name(needs.isa));
    std::vector<std::string_view> extensions;
    for (Extension extension : kExtensions)
      if (needs.extensions.contains(extension)) extensions.push_back(name(extension));
    out.count(extensions.size());
    for (std::string_view extension : extensions) out.text(extension);
    out.number(image.threads);
    out.text(program.plan);
    out.text(program.prices);
    out.number(image.flushes_denormals ? 1 : 0);
    out.symbols(program.open == nullptr ? std::vector<Symbol>() : hone::symbols_of(*program.open));
    out.types(image.inputs);
    out.types(image.outputs);
    if (program.open == nullptr) {
      out.sizes(std::vector<Dim>{image.arena_bytes});
      out.count(0);
    } else {
      out.sizes(program.open->arena);
      out.sizes(program.open->numbers);
    }
    out.count(image.donations.size());
    for (const auto& [input, output] : image.donations) {
      out.number(input);
      out.number(output);
    }
    out.count(image.constants.size());
    for (const Tensor& constant : image.constants) {
      out.count(weight(constant));
      out.static_type(constant.type());
    }
    out.count(image.kernels.size());
    for (size_t k = 0; k < image.kernels.size(); ++k)
      if (program.capability == 0)
        write(out, image.kernels[k], *image.kernels[k].object);
      else
        write(out, image.kernels[k], program.gpu[k], kind_of(program) == Kind::exact_gpu_program);
    out.number(image.loops);
    HONE_TRY(write(out, image.commands, 0));
    return out.take();
  }

  // A kernel that has machine code runs on the CPU beside the GPU.
  void write(Values& out, const image::Kernel& kernel, const GpuKernel& gpu, bool in_exact) {
    const bool is_on_cpu = kernel.object != nullptr;
    write(out, kernel, is_on_cpu ? *kernel.object : gpu.ptx);
    out.number(is_on_cpu ? 0 : gpu.capability);
    if (is_on_cpu) return;
    out.number(gpu.alignment);
    for (const GpuPhase& phase : gpu.phases)
      for (int64_t number : {int64_t{phase.trip_of == TripOf::block}, phase.block_threads,
                             phase.shared_bytes, phase.scratch_bytes})
        out.number(number);
    if (!in_exact) return;
    out.number(gpu.is_exact ? 1 : 0);
    for (const GpuPhase& phase : gpu.phases) {
      out.count(phase.maps.size());
      for (const GpuMap& map : phase.maps) write(out, map);
    }
  }

  static void write(Values& out, const GpuMap& map) {
    out.number(map.buffer);
    out.text(name(map.dtype));
    out.count(map.dims.size());
    for (size_t i = 0; i < map.dims.size(); ++i) {
      out.number(map.dims[i]);
      out.number(map.box[i]);
    }
  }

  void write(Values& out, const image::Kernel& kernel, const std::string& code) {
    out.text(kernel.name);
    out.count(object(code));
    out.number(kernel.scratch_bytes);
    out.count(kernel.phases.size());
    for (const image::Phase& phase : kernel.phases) {
      out.text(phase.symbol);
      out.number(phase.trips);
      out.number(phase.is_parallel ? 1 : 0);
    }
  }

  // Kernels may share code, also those of programs for other instructions.
  size_t object(std::string_view code) {
    const auto [known, is_new] = object_of_.try_emplace(code, objects_.all.size());
    if (is_new) objects_.all.push_back(code);
    return known->second;
  }

  size_t weight(const Tensor& constant) {
    const size_t index = pool_.add(constant);
    if (index == weights_.all.size()) weights_.all.push_back(hone::text_of(constant.bytes()));
    return index;
  }

  static void write(Values& out, const Place& place) {
    out.number(static_cast<int64_t>(place.region));
    out.number(place.index);
    out.number(place.offset);
    out.number(place.bytes);
    out.count(place.steps.size());
    for (const auto& [loop, stride] : place.steps) {
      out.number(loop);
      out.number(stride);
    }
  }

  Status write(Values& out, const image::Block& block, int depth) {
    if (depth == honec::kMaxDepth)
      return unsupported("a compiled model has branches and loops at most {} deep",
                         honec::kMaxDepth);
    out.count(block.size());
    for (const image::Command& command : block) {
      out.text(command.name);
      out.count(command.kind.index());
      HONE_TRY(
          std::visit([&](const auto& kind) { return write(out, kind, depth + 1); }, command.kind));
    }
    return {};
  }
  Status write(Values& out, const image::Launch& launch, int) {
    out.number(launch.kernel);
    out.count(launch.buffers.size());
    for (const Place& place : launch.buffers) write(out, place);
    out.count(launch.symbols.size());
    for (int64_t symbol : launch.symbols) out.number(symbol);
    return {};
  }
  Status write(Values& out, const image::Copy& copy, int) {
    write(out, copy.from);
    write(out, copy.to);
    return {};
  }
  Status write(Values& out, const image::Branch& branch, int depth) {
    write(out, branch.condition);
    HONE_TRY(write(out, branch.on_true, depth));
    return write(out, branch.on_false, depth);
  }
  Status write(Values& out, const image::While& loop, int depth) {
    HONE_TRY(write(out, loop.test, depth));
    write(out, loop.condition);
    return write(out, loop.body, depth);
  }
  Status write(Values& out, const image::Repeat& repeat, int depth) {
    out.number(repeat.loop);
    out.number(repeat.trips);
    out.number(repeat.reverse ? 1 : 0);
    return write(out, repeat.body, depth);
  }
  Status write(Values& out, const image::Start& start, int) {
    const SpmdCollective& spmd = start.collective;
    out.text(name(spmd.kind));
    out.text(name(spmd.combine));
    out.number(spmd.group_size);
    out.count(spmd.groups.size());
    for (const int32_t device : spmd.groups) out.number(device);
    out.count(spmd.pairs.size());
    for (const auto& [source, target] : spmd.pairs) {
      out.number(source);
      out.number(target);
    }
    out.text(to_string(spmd.schedule));
    out.text(name(start.dtype));
    write(out, start.from);
    write(out, start.to);
    out.text(start.result);
    return {};
  }
  Status write(Values& out, const image::Wait& wait, int) {
    out.number(wait.number);
    return {};
  }
  Status write(Values& out, const image::DeviceIndex& index, int) {
    write(out, index.to);
    return {};
  }
  Status write(Values& out, const image::Send& send, int) {
    write(out, send.message, send.from, send.value);
    return {};
  }
  Status write(Values& out, const image::Receive& receive, int) {
    write(out, receive.message, receive.to, receive.value);
    return {};
  }
  static void write(Values& out, const Message& message, const image::Place& place,
                    const std::string& value) {
    out.number(message.peer);
    out.number(message.tag);
    write(out, place);
    out.text(value);
  }

  HonecBytes out_;
  std::vector<Part> sections_;
  Pieces objects_;
  Pieces weights_;
  std::map<std::string_view, size_t> object_of_;
  WeightPool pool_;
};

}  // namespace

Instructions needs_of(const Image& image) {
  Instructions needs;
  for (const image::Kernel& kernel : image.kernels) needs = both(needs, kernel.needs);
  return needs;
}

std::string HonecBytes::joined() const {
  std::string all;
  for (std::string_view piece : pieces) all += piece;
  return all;
}

HonecModel honec_model(std::span<const HonecProgram> programs) {
  const Image& first = programs[0].pattern();
  HonecModel model = {first.name, first.inputs, first.outputs};
  int names = 0;
  const auto open = [&](std::vector<image::Port>& ports, const auto& ports_of) {
    for (size_t i = 0; i < ports.size(); ++i) {
      Dims dims(ports[i].type.dims().begin(), ports[i].type.dims().end());
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        const auto differs = [&](const HonecProgram& program) {
          return ports_of(program)[i].type.dims()[axis] != dims[axis];
        };
        if (std::ranges::any_of(programs, differs))
          dims[axis] = Symbol::get(fmt::format("size{}", names++), 0, kMaxElements);
      }
      ports[i].type = ports[i].type.with_dims(dims);
    }
  };
  open(model.inputs, [](const HonecProgram& one) { return std::span(one.pattern().inputs); });
  open(model.outputs, [](const HonecProgram& one) { return std::span(one.pattern().outputs); });
  return model;
}

Result<HonecBytes> honec_bytes(const HonecModel& model, std::span<const HonecProgram> programs,
                               std::string_view version) {
  return HonecWriter().write(model, programs, version);
}
Result<HonecBytes> honec_bytes(std::span<const HonecProgram> programs, std::string_view version) {
  return honec_bytes(honec_model(programs), programs, version);
}

Status write_honec(const std::filesystem::path& path, const HonecModel& model,
                   std::span<const HonecProgram> programs, std::string_view version) {
  const HonecBytes bytes = HONE_TRY(honec_bytes(model, programs, version));
  return write_file_atomic(path, bytes.pieces);
}
Status write_honec(const std::filesystem::path& path, std::span<const HonecProgram> programs,
                   std::string_view version) {
  return write_honec(path, honec_model(programs), programs, version);
}

}  // namespace hone
