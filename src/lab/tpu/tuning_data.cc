#include "lab/tpu/tuning_data.h"

#include "base/file.h"
#include "formats/wire.h"

namespace hone::tpu {
namespace {

// How much of the limits is left.
struct Room {
  explicit Room(size_t file_bytes) : bytes(kFreeTuningBytes + file_bytes * kMaxTuningInflation) {}

  size_t bytes;
  size_t modules = kMaxModules;
  size_t instructions = kMaxInstructions;
  size_t runs = kMaxRuns;
};

Status take_one(size_t& room, std::string_view what, size_t most) {
  if (room == 0) return over_limit("there are more than {} {}", most, what);
  --room;
  return {};
}

// Called before another part of `bytes` bytes is made: parts of 2 bytes become large ones.
Status take_bytes(Room& room, size_t bytes) {
  if (bytes > room.bytes)
    return over_limit("it has too many parts for its size: they take more than {} times its bytes",
                      kMaxTuningInflation);
  room.bytes -= bytes;
  return {};
}

// The purpose of a field of a message: its number, and where it goes. Other fields do not matter.
class Fields {
 public:
  Fields(const WireField& field, Room& room) : field_(field), room_(room) {}

  Fields& integer(int number, int64_t& to) {
    if (is(number)) keep(field_.integer(), [&](int64_t value) { to = value; });
    return *this;
  }
  Fields& flag(int number, bool& to) {
    if (is(number)) keep(field_.integer(), [&](int64_t value) { to = value != 0; });
    return *this;
  }
  Fields& text(int number, std::string& to) {
    if (is(number)) keep(field_.message(), [&](const WireBytes& bytes) { to = bytes.text(); });
    return *this;
  }
  Fields& list(int number, Integers& to) {
    if (is(number)) status_ = field_.append_to(to);
    return *this;
  }
  // A message, read by `read(bytes, to)`; one that comes again goes on with the same.
  template <class T>
  Fields& message(int number, T& to, Status (*read)(const WireBytes&, T&, Room&)) {
    if (!is(number)) return *this;
    const Result<WireBytes> bytes = field_.message();
    status_ = bytes.ok() ? read(*bytes, to, room_) : Status(Error(bytes.error()));
    return *this;
  }
  template <class T>
  Fields& messages(int number, std::vector<T>& to, Status (*read)(const WireBytes&, T&, Room&)) {
    if (!is(number)) return *this;
    status_ = take_bytes(room_, sizeof(T));
    return status_.ok() ? message(number, to.emplace_back(), read) : *this;
  }
  Status done() { return std::move(status_); }

 private:
  bool is(int number) const { return field_.number == number && status_.ok(); }
  template <class T, class Call>
  void keep(const Result<T>& result, const Call& call) {
    if (result.ok())
      call(*result);
    else
      status_ = Error(result.error());
  }

  const WireField& field_;
  Room& room_;
  Status status_;
};

// ---- The program --------------------------------------------------------------------------------

Status read_layout(const WireBytes& bytes, Integers& minor_to_major, Room& room) {
  return each_field(
      bytes, [&](const WireField& f) { return Fields(f, room).list(1, minor_to_major).done(); });
}

Status read_shape(const WireBytes& bytes, HloShape& shape, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    shape.tuple_size += f.number == 4 ? 1 : 0;
    return Fields(f, room)
        .integer(2, shape.element_type)
        .list(3, shape.dims)
        .message(5, shape.minor_to_major, read_layout)
        .done();
  });
}

Status read_window_dim(const WireBytes& bytes, HloWindowDim& dim, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room)
        .integer(1, dim.size)
        .integer(2, dim.stride)
        .integer(3, dim.padding_low)
        .integer(4, dim.padding_high)
        .integer(5, dim.window_dilation)
        .integer(6, dim.base_dilation)
        .flag(7, dim.is_reversed)
        .done();
  });
}

Status read_window(const WireBytes& bytes, std::vector<HloWindowDim>& dims, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).messages(1, dims, read_window_dim).done();
  });
}

Status read_conv_dims(const WireBytes& bytes, HloConvDims& conv, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room)
        .integer(3, conv.kernel_input_feature)
        .integer(4, conv.kernel_output_feature)
        .list(6, conv.kernel_spatial)
        .integer(7, conv.input_batch)
        .integer(8, conv.input_feature)
        .integer(9, conv.output_batch)
        .integer(10, conv.output_feature)
        .list(11, conv.input_spatial)
        .done();
  });
}

Status read_dot_dims(const WireBytes& bytes, HloDotDims& dot, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room)
        .list(1, dot.lhs_contract)
        .list(2, dot.rhs_contract)
        .list(3, dot.lhs_batch)
        .list(4, dot.rhs_batch)
        .done();
  });
}

Status read_slice_dim(const WireBytes& bytes, HloSliceDim& dim, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room)
        .integer(1, dim.start)
        .integer(2, dim.limit)
        .integer(3, dim.stride)
        .done();
  });
}

Status read_pad_dim(const WireBytes& bytes, HloPadDim& dim, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).integer(1, dim.low).integer(2, dim.high).done();
  });
}

Status read_padding(const WireBytes& bytes, std::vector<HloPadDim>& dims, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).messages(1, dims, read_pad_dim).done();
  });
}

Status read_instruction(const WireBytes& bytes, HloInstruction& to, Room& room) {
  HONE_TRY(take_one(room.instructions, "instructions", kMaxInstructions));
  HONE_TRY(each_field(
      bytes,
      [&](const WireField& f) {
        return Fields(f, room)
            .text(2, to.opcode)
            .message(3, to.shape, read_shape)
            .integer(9, to.parameter_number)
            .list(14, to.dimensions)
            .message(15, to.window, read_window)
            .message(16, to.conv, read_conv_dims)
            .messages(17, to.slice, read_slice_dim)
            .list(20, to.dynamic_slice_sizes)
            .message(21, to.padding, read_padding)
            .message(30, to.dot, read_dot_dims)
            .integer(35, to.id)
            .list(36, to.operands)
            .list(38, to.called)
            .integer(50, to.feature_groups)
            .integer(58, to.batch_groups)
            .flag(60, to.is_stable)
            .done();
      }));
  if (to.opcode.empty()) return bad_input("an instruction has no opcode");
  return {};
}

Status read_computation(const WireBytes& bytes, HloComputation& to, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room)
        .text(1, to.name)
        .messages(2, to.instructions, read_instruction)
        .integer(5, to.id)
        .integer(6, to.root)
        .done();
  });
}

Status read_module(const WireBytes& bytes, HloModule& to, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).text(1, to.name).messages(3, to.computations, read_computation).done();
  });
}

// ---- Runs ---------------------------------------------------------------------------------------

Status read_tile(const WireBytes& bytes, TuningRun& run, Room& room) {
  run.has_tile = true;
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).list(1, run.kernel).list(2, run.output).list(3, run.input).done();
  });
}

Status read_op_config(const WireBytes& bytes, TuningRun& run, Room& room) {
  return each_field(
      bytes, [&](const WireField& f) { return Fields(f, room).message(1, run, read_tile).done(); });
}

Status read_tensor(const WireBytes& bytes, Integers& dims, Room& room) {
  return each_field(bytes,
                    [&](const WireField& f) { return Fields(f, room).list(1, dims).done(); });
}

Status read_node(const WireBytes& bytes, std::vector<Integers>& tensors, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).messages(1, tensors, read_tensor).done();
  });
}

Status read_layouts(const WireBytes& bytes, TuningRun& run, Room& room) {
  run.has_layout = true;
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).messages(1, run.nodes, read_node).done();
  });
}

Status read_module_config(const WireBytes& bytes, TuningRun& run, Room& room) {
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room).message(1, run, read_layouts).done();
  });
}

Status read_profile(const WireBytes& bytes, int64_t& nanoseconds, Room& room) {
  return each_field(
      bytes, [&](const WireField& f) { return Fields(f, room).integer(4, nanoseconds).done(); });
}

Status read_run(const WireBytes& bytes, TuningRun& run, Room& room) {
  HONE_TRY(take_one(room.runs, "runs", kMaxRuns));
  return each_field(bytes, [&](const WireField& f) {
    return Fields(f, room)
        .message(1, run, read_op_config)
        .message(2, run, read_module_config)
        .flag(3, run.has_error)
        .message(4, run.nanoseconds, read_profile)
        .flag(5, run.is_default)
        .done();
  });
}

Status read_tuning_module(const WireBytes& bytes, TuningModule& to, Room& room) {
  HONE_TRY(each_field(
      bytes,
      [&](const WireField& f) -> Status {
        int64_t fingerprint = static_cast<int64_t>(to.fingerprint);
        HONE_TRY(Fields(f, room)
                     .message(1, to.module, read_module)
                     .integer(2, fingerprint)
                     .messages(3, to.runs, read_run)
                     .list(4, to.config_nodes)
                     .done());
        to.fingerprint = static_cast<uint64_t>(fingerprint);
        return {};
      }));
  return {};
}

// Tells whether all fields are lists of messages, as in a TuningData.
Result<bool> is_wrapped(const WireBytes& bytes) {
  bool is_wrapped = true;
  HONE_TRY(each_field(
      bytes,
      [&](const WireField& f) -> Status {
        is_wrapped = is_wrapped && f.number == 1 && f.type == WireType::bytes;
        return {};
      }));
  return is_wrapped;
}

Result<std::vector<TuningModule>> parse(const WireBytes& bytes) {
  std::vector<TuningModule> modules;
  Room room(bytes.file.size());
  if (!HONE_TRY(is_wrapped(bytes))) {
    HONE_TRY(read_tuning_module(bytes, modules.emplace_back(), room));
    return modules;
  }
  HONE_TRY(each_field(
      bytes,
      [&](const WireField& f) -> Status {
        HONE_TRY(take_one(room.modules, "modules", kMaxModules));
        HONE_TRY(take_bytes(room, sizeof(TuningModule)));
        return read_tuning_module(HONE_TRY(f.message()), modules.emplace_back(), room);
      }));
  return modules;
}

}  // namespace

Result<std::vector<TuningModule>> parse_tuning_data(std::span<const std::byte> file,
                                                    std::string_view where) {
  if (file.size() > kMaxTuningBytes)
    return over_limit("'{}' has {} bytes, more than {}", where, file.size(), kMaxTuningBytes);
  Result<std::vector<TuningModule>> modules = parse(WireBytes::all(file));
  if (!modules.ok()) return std::move(modules).error().within(where);
  return modules;
}

Result<std::vector<TuningModule>> read_tuning_data(const std::filesystem::path& path) {
  const MappedFile file = HONE_TRY(MappedFile::open(path));
  return parse_tuning_data(file.bytes(), path.native());
}

}  // namespace hone::tpu
