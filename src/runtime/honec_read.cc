#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "runtime/honec.h"
#include "runtime/honec_cursor.h"
#include "runtime/honec_layout.h"
#include "runtime/honec_program.h"
#include "runtime/honec_segments.h"

// Reads the sections of a compiled model, and checks that they are whole and fit each other.

namespace hone {

using honec::Cursor;
using honec::Kind;
using honec::Section;

namespace {

constexpr int64_t kHeaderBytes = sizeof(honec::Header);

std::string_view kind_name(Kind kind) {
  constexpr std::string_view kNames[] = {
      "metadata", "program",  "code",        "weights",
      "segments", "division", "gpu program", "program for one GPU"};
  return kNames[static_cast<size_t>(kind) - 1];
}

// Indexed by the number of the section. `second` is the kind of the section that is special.
Kind kind_of(uint32_t i, uint32_t sections, std::optional<Kind> second) {
  if (i == 0) return Kind::metadata;
  if (i == 1 && second) return *second;
  if (i + 2 < sections) return Kind::program;
  return i + 2 == sections ? Kind::code : Kind::weights;
}

// Kinds that not all versions have.
bool has_kind(uint32_t version, Kind for_gpu) {
  return version >= honec::kExactGpuVersion || version == honec::kMeshVersion ||
         (version == honec::kGpuVersion && for_gpu == Kind::gpu_program);
}

bool are_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Result<std::vector<image::Port>> read_ports(Cursor& in, const honec::Symbols& symbols,
                                            std::string_view what) {
  std::vector<image::Port> ports;
  const int64_t count = HONE_TRY(in.count(what, 3 * Cursor::kNumber));
  for (int64_t i = 0; i < count; ++i) {
    std::string name = HONE_TRY(in.text("a name"));
    ports.push_back({std::move(name), HONE_TRY(honec::read_type(in, symbols))});
  }
  return ports;
}

// True if a value of the type can be one of the port, as far as element type, rank and numbers say.
bool may_fit(Type type, Type port) {
  if (type.dtype() != port.dtype() || type.rank() != port.rank()) return false;
  for (int axis = 0; axis < port.rank(); ++axis)
    if (port.dim(axis).is_static() && type.dim(axis).is_static() &&
        port.dim(axis) != type.dim(axis))
      return false;
  return true;
}

Status check_ports(std::span<const image::Port> ports, std::span<const image::Port> wanted,
                   std::string_view what) {
  if (ports.size() != wanted.size())
    return bad_input("a program has {} {}s, others {}", ports.size(), what, wanted.size());
  for (size_t i = 0; i < ports.size(); ++i)
    if (!may_fit(ports[i].type, wanted[i].type))
      return bad_input("{} {} of a program is {}, elsewhere {}", what, i, ports[i].type.to_string(),
                       wanted[i].type.to_string());
  return {};
}

// The names are those of the model, if it is one graph.
std::vector<image::Port> ports_of(std::span<const Type> types, std::span<const image::Port> model,
                                  bool is_model) {
  std::vector<image::Port> ports;
  for (size_t i = 0; i < types.size(); ++i)
    ports.push_back(
        {is_model && i < model.size() ? model[i].name : fmt::format("{}", i), types[i]});
  return ports;
}

int64_t largest(std::span<const Dim> sizes) {
  int64_t most = 0;
  for (Dim size : sizes) most = std::max(most, size.range().high);
  return most;
}

bool have_equal_types(std::span<const image::Port> a, std::span<const image::Port> b) {
  return std::ranges::equal(a, b, {}, &image::Port::type, &image::Port::type);
}

}  // namespace

Status HonecFile::read() {
  Status good = read_sections();
  if (good.ok() || !good.error().hint().empty()) return good;
  return std::move(good).error().with_hint(
      "it is damaged or was not copied as a whole; 'hone compile MODEL -o FILE.honec' makes it");
}

// Where sections begin follows from their sizes, and bytes between them are 0: each byte of the
// file is checked, or a weight's.
Status HonecFile::read_sections() {
  honec::Header header = {};
  if (bytes_.size() < sizeof header)
    return bad_input("it is not a compiled model: it has {} bytes", bytes_.size());
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (std::memcmp(header.magic, honec::kMagic, sizeof header.magic) != 0)
    return bad_input("it is not a compiled model: it does not begin like one");
  if (!honec::has_version(header.version))
    return unsupported(
               "it is a compiled model of version {}, but this hone reads versions {}, and {} to "
               "{}",
               header.version, honec::kVersion, honec::kMeshVersion, honec::kCubinVersion)
        .with_hint("compile the model again with this hone");
  version_ = header.version;
  if (header.file_bytes != bytes_.size())
    return bad_input("the file has {} bytes, but its header says {}", bytes_.size(),
                     header.file_bytes);
  const int64_t table_bytes = int64_t{header.sections} * int64_t{sizeof(Section)};
  if (header.sections < 4 || header.sections > honec::kMaxSections ||
      kHeaderBytes + table_bytes > bytes())
    return bad_input("the table cannot have {} sections", header.sections);
  const auto table = bytes_.subspan(kHeaderBytes, static_cast<size_t>(table_bytes));
  if (honec::header_checksum(header, table) != header.checksum)
    return bad_input("the checksum of the header is wrong");

  const auto section_at = [&](uint32_t i) {
    Section section = {};
    std::memcpy(&section, table.data() + i * sizeof section, sizeof section);
    return section;
  };
  std::optional<Kind> second;
  for (Kind kind : {Kind::segments, Kind::division})
    if (section_at(1).kind == static_cast<uint32_t>(kind)) second = kind;
  if (second && header.sections < 5)
    return bad_input("the table cannot have {} sections", header.sections);
  int64_t end = kHeaderBytes + table_bytes;
  for (uint32_t i = 0; i < header.sections; ++i) {
    Kind kind = kind_of(i, header.sections, second);
    for (Kind for_gpu : {Kind::gpu_program, Kind::exact_gpu_program})
      if (kind == Kind::program && section_at(i).kind == static_cast<uint32_t>(for_gpu) &&
          has_kind(header.version, for_gpu))
        kind = for_gpu;
    if (kind == Kind::program && header.version == honec::kCubinVersion &&
        i + 3 == header.sections && section_at(i).kind == static_cast<uint32_t>(Kind::cubins))
      kind = Kind::cubins;
    Status good = read_section(section_at(i), kind, end);
    if (!good.ok()) return std::move(good).error().within(fmt::format("section {}", i));
  }
  if (end != bytes()) return bad_input("{} bytes come after the last section", bytes() - end);
  HONE_TRY(check_units());
  HONE_TRY(check_division());
  HONE_TRY(check_end(objects_, code_, "code"));
  return check_end(tensors_, weights_, "weights");
}

// Moves `end`, of what stands before, to the section's.
Status HonecFile::read_section(const Section& section, Kind kind, int64_t& end) {
  if (section.kind != static_cast<uint32_t>(kind) || section.zero != 0)
    return bad_input("its kind is {}, but {} is expected", section.kind, kind_name(kind));
  const int64_t offset = round_up(end, honec::alignment(kind));
  const int64_t most = kind == Kind::weights ? bytes() : honec::kMaxSectionBytes;
  if (section.offset != static_cast<uint64_t>(offset) || offset > bytes() ||
      section.bytes > static_cast<uint64_t>(std::min(most, bytes() - offset)))
    return bad_input("{}: {} bytes at {} of {}", kind_name(kind), section.bytes, section.offset,
                     bytes());
  if (!are_zero(bytes_.subspan(static_cast<size_t>(end), static_cast<size_t>(offset - end))))
    return bad_input("bytes before it are not 0");
  const auto content = bytes_.subspan(section.offset, section.bytes);
  if (section.checksum != (kind == Kind::weights ? 0 : hash_bytes(content)))
    return bad_input("the checksum of {} is wrong", kind_name(kind));
  end = offset + static_cast<int64_t>(section.bytes);
  switch (kind) {
    case Kind::metadata: return read_metadata(content);
    case Kind::segments: return read_segments(content);
    case Kind::division: return read_division(content);
    case Kind::program: return read_head(content, honec::ProgramFor::cpu);
    case Kind::gpu_program: return read_head(content, honec::ProgramFor::gpu);
    case Kind::exact_gpu_program: return read_head(content, honec::ProgramFor::exact_gpu);
    case Kind::cubins: return read_cubins(content);
    case Kind::code: code_ = content; return {};
    case Kind::weights: weights_ = content; return {};
  }
  return {};
}

Status HonecFile::check_end(std::span<const Piece> pieces, std::span<const std::byte> section,
                            std::string_view what) {
  const int64_t end = pieces.empty() ? 0 : pieces.back().offset + pieces.back().bytes;
  if (end == static_cast<int64_t>(section.size())) return {};
  return bad_input("there are {} bytes of {}, but the metadata says {}", section.size(), what, end);
}

// Each begins at the first multiple of the alignment behind the one before.
Result<std::vector<HonecFile::Piece>> HonecFile::read_pieces(Cursor& in, std::string_view what) {
  std::vector<Piece> pieces;
  const int64_t count = HONE_TRY(in.count(what, 2 * Cursor::kNumber));
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    Piece piece = {.offset = round_up(end, honec::kAlignment)};
    piece.bytes = HONE_TRY(in.number("a size", 0, bytes() - piece.offset));
    piece.checksum = static_cast<uint64_t>(HONE_TRY(in.number()));
    end = piece.offset + piece.bytes;
    pieces.push_back(piece);
  }
  return pieces;
}

Status HonecFile::read_metadata(std::span<const std::byte> bytes) {
  Cursor in(bytes, "metadata");
  name_ = HONE_TRY(in.text("the name"));
  hone_ = HONE_TRY(in.text("the version"));
  const honec::Symbols symbols = HONE_TRY(honec::read_symbols(in));
  inputs_ = HONE_TRY(read_ports(in, symbols, "inputs"));
  outputs_ = HONE_TRY(read_ports(in, symbols, "outputs"));
  objects_ = HONE_TRY(read_pieces(in, "objects"));
  tensors_ = HONE_TRY(read_pieces(in, "weights"));
  return in.end();
}

Status HonecFile::read_segments(std::span<const std::byte> bytes) {
  Cursor in(bytes, "segments");
  segments_ = HONE_TRY(honec::read_segments(in));
  return {};
}

Status HonecFile::read_division(std::span<const std::byte> bytes) {
  Cursor in(bytes, "division");
  BatchDivision& division = division_.emplace();
  division.rows = HONE_TRY(in.number("rows", 0, INT64_MAX));
  for (std::vector<int>* dims : {&division.inputs, &division.outputs}) {
    const int64_t count = HONE_TRY(in.count("dims", Cursor::kNumber));
    for (int64_t i = 0; i < count; ++i)
      dims->push_back(static_cast<int>(HONE_TRY(in.number("a dim", -1, kMaxRank - 1))));
  }
  const int64_t count = HONE_TRY(in.count("shares", 3 * Cursor::kNumber));
  if (count > BatchDivision::kMaxShares)
    return in.at(fmt::format("{} devices; there are at most {}", count, BatchDivision::kMaxShares));
  for (int64_t i = 0; i < count; ++i) {
    BatchDivision::Share share;
    share.first = HONE_TRY(in.number("a row", 0, division.rows));
    share.count = HONE_TRY(in.number("rows", 0, division.rows));
    share.code = static_cast<uint32_t>(HONE_TRY(in.number("a code", 0, count - 1)));
    division.shares.push_back(share);
  }
  if (version_ == honec::kMeshVersion) HONE_TRY(read_mesh(in));
  HONE_TRY(in.end());
  return check(division, divided_inputs(), divided_outputs());
}

Status HonecFile::read_cubins(std::span<const std::byte> bytes) {
  Cursor in(bytes, "cubins");
  const int64_t count = HONE_TRY(in.count("cubins", 4 * Cursor::kNumber));
  for (int64_t i = 0; i < count; ++i) {
    HonecCubin& cubin = cubins_.emplace_back();
    cubin.object = HONE_TRY(in.index("an object"));
    if (cubin.object >= objects_.size())
      return in.at(fmt::format("object {} of {}", cubin.object, objects_.size()));
    cubin.capability = HONE_TRY(in.number("a capability", 0, INT32_MAX));
    cubin.maker = HONE_TRY(in.number("a version of CUDA", 0, INT32_MAX));
    cubin.bytes = HONE_TRY(in.view("machine code"));
    if (!may_be_cubin(cubin.bytes))
      return in.at(fmt::format("machine code of {} bytes that is no ELF", cubin.bytes.size()));
  }
  return in.end();
}

// The axes, the constants, and the parts that divide each dim of each input and output.
Status HonecFile::read_mesh(Cursor& in) {
  MeshDivision& mesh = mesh_.emplace();
  const int64_t axes = HONE_TRY(in.count("axes", 2 * Cursor::kNumber));
  for (int64_t i = 0; i < axes; ++i) {
    std::string name = HONE_TRY(in.text("an axis"));
    mesh.axes.push_back({std::move(name),
                         HONE_TRY(in.number("devices", 1, BatchDivision::kMaxShares))});
  }
  for (const image::Port& input : inputs_) mesh.inputs.push_back({.whole = input});
  for (const image::Port& output : outputs_) mesh.outputs.push_back({.whole = output});
  const honec::Symbols none;
  const int64_t constants = HONE_TRY(in.count("constants", 3 * Cursor::kNumber));
  for (int64_t i = 0; i < constants; ++i) {
    const uint32_t number = HONE_TRY(in.index("a weight"));
    const Type type = HONE_TRY(honec::read_type(in, none));
    if (number >= tensors_.size() || tensors_[number].bytes != type.static_bytes())
      return in.at(fmt::format("weight {} is not of type {}", number, type.to_string()));
    mesh_constants_.push_back(number);
    mesh.inputs.push_back({.whole = {fmt::format("constant{}", i), type}});
  }
  for (std::vector<MeshPort>* ports : {&mesh.inputs, &mesh.outputs})
    for (MeshPort& port : *ports) HONE_TRY(read_parts(in, port));
  HONE_TRY(check(mesh));
  if (mesh.devices() != division_->rows)
    return in.at(fmt::format("{} devices, and {} rows", mesh.devices(), division_->rows));
  mesh_inputs_ = ports_of_all(mesh.inputs, division_->inputs, mesh.devices());
  mesh_outputs_ = ports_of_all(mesh.outputs, division_->outputs, mesh.devices());
  return check(mesh, mesh_inputs_, mesh_outputs_);
}

Status HonecFile::read_parts(Cursor& in, MeshPort& port) {
  const int64_t dims = HONE_TRY(in.count("dims", Cursor::kNumber));
  for (int64_t d = 0; d < dims; ++d) {
    std::vector<MeshPort::Part>& parts = port.dims.emplace_back();
    const int64_t count = HONE_TRY(in.count("parts", 2 * Cursor::kNumber));
    for (int64_t k = 0; k < count; ++k) {
      const int64_t divisor = HONE_TRY(in.number("a divisor", 1, BatchDivision::kMaxShares));
      parts.push_back({divisor, HONE_TRY(in.number("a part", 1, BatchDivision::kMaxShares))});
    }
  }
  return {};
}

Status HonecFile::read_head(std::span<const std::byte> bytes, honec::ProgramFor device) {
  Cursor in(bytes, "program");
  const honec::Head head = HONE_TRY(honec::read_head(in, device));
  const size_t units = segments_ ? segments_->units.size() : division_ ? division_->codes() : 1;
  if (head.unit >= units) return in.at(fmt::format("there is no unit {}", head.unit));
  HONE_TRY(add_program({.unit = head.unit,
                        .capability = head.capability,
                        .is_exact = device == honec::ProgramFor::exact_gpu,
                        .needs = head.needs,
                        .threads = head.threads,
                        .arena_bytes = largest(head.arena),
                        .plan = head.plan,
                        .prices = head.prices,
                        .flushes_denormals = head.flushes_denormals,
                        .inputs = ports_of(head.inputs, divided_inputs(), !segments_),
                        .outputs = ports_of(head.outputs, divided_outputs(), !segments_),
                        .is_open = !head.symbols.empty()}));
  program_bytes_.push_back(bytes);
  return {};
}

Status HonecFile::add_program(Program program) {
  if (!segments_ && !division_) {
    HONE_TRY(check_ports(program.inputs, inputs_, "input"));
    HONE_TRY(check_ports(program.outputs, outputs_, "output"));
  }
  const auto known = std::ranges::find_if(sizes_, [&](size_t first) {
    return programs_[first].unit == program.unit &&
           have_equal_types(programs_[first].inputs, program.inputs);
  });
  program.sizes = static_cast<size_t>(known - sizes_.begin());
  if (known == sizes_.end())
    sizes_.push_back(programs_.size());
  else if (!have_equal_types(programs_[*known].outputs, program.outputs) ||
           programs_[*known].is_open != program.is_open)
    return bad_input("its outputs have other types than those of a program with equal inputs");
  programs_.push_back(std::move(program));
  return {};
}

Status HonecFile::check_units() const {
  if (!segments_) return {};
  std::vector<UnitArity> units(segments_->units.size());
  std::vector<bool> has_code(units.size());
  for (const Program& program : programs_) {
    UnitArity& unit = units[program.unit];
    const UnitArity own = {program.inputs.size(), program.outputs.size()};
    if (has_code[program.unit] && (unit.inputs != own.inputs || unit.outputs != own.outputs))
      return bad_input("programs of unit {} have different inputs or outputs", program.unit);
    has_code[program.unit] = true;
    unit = own;
  }
  for (size_t i = 0; i < units.size(); ++i)
    if (!has_code[i]) return bad_input("unit {} has no program", i);
  if (segments_->outputs.size() != outputs_.size())
    return bad_input("segments give {} outputs, the model has {}", segments_->outputs.size(),
                     outputs_.size());
  return check(*segments_, inputs_.size(), units);
}

// Each device has a program for its rows.
Status HonecFile::check_division() const {
  if (!division_) return {};
  const auto fits = [&](std::span<const image::Port> ports, std::span<const image::Port> whole,
                        std::span<const int> dims, const BatchDivision::Share& share) {
    for (size_t i = 0; i < whole.size() && ports.size() == whole.size(); ++i)
      if (ports[i].type != share_of(whole[i].type, dims[i], division_->rows, share.count))
        return false;
    return ports.size() == whole.size();
  };
  for (size_t i = 0; i < division_->shares.size(); ++i) {
    const BatchDivision::Share& share = division_->shares[i];
    bool has_code = false;
    for (const Program& program : programs_) {
      if (program.unit != share.code) continue;
      if (program.is_open || !fits(program.inputs, divided_inputs(), division_->inputs, share) ||
          !fits(program.outputs, divided_outputs(), division_->outputs, share))
        return bad_input("program {} is not for the {} rows of device {}", program.unit,
                         share.count, i);
      has_code = true;
    }
    if (!has_code) return bad_input("device {} has no program", i);
  }
  return {};
}

Status HonecFile::verify() const {
  int64_t end = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Piece& piece = tensors_[i];
    const auto content =
        weights_.subspan(static_cast<size_t>(piece.offset), static_cast<size_t>(piece.bytes));
    const auto gap =
        weights_.subspan(static_cast<size_t>(end), static_cast<size_t>(piece.offset - end));
    if (hash_bytes(content) != piece.checksum || !are_zero(gap))
      return placed(
          bad_input("weight {} of {}, {} bytes, is damaged", i, tensors_.size(), piece.bytes)
              .with_hint("compile the model again, or copy the file again"));
    end = piece.offset + piece.bytes;
  }
  return {};
}

}  // namespace hone
