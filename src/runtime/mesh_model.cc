#include "runtime/mesh_model.h"

#include <algorithm>
#include <set>

#include "base/axis_text.h"
#include "base/checked_math.h"
#include "base/text.h"

namespace hone {
namespace {

int64_t count_of_parts(const std::vector<MeshPort::Part>& parts) {
  int64_t count = 1;
  for (const MeshPort::Part& part : parts) count *= part.size;
  return count;
}

Type type_of_all(Type part, int64_t devices) {
  Dims dims(part.dims().begin(), part.dims().end());
  dims[0] = dims[0].value() * devices;
  return part.with_dims(dims);
}

// Elements as they are copied: whole bytes, or numbers of a type that has fewer bits.
class PartCopy {
 public:
  explicit PartCopy(const MeshPort& port)
      : dims_(port.dims), whole_(port.whole.type.static_dims()), part_(port.part().static_dims()) {}

  int64_t part_elements() const {
    int64_t count = 1;
    for (const int64_t size : part_) count *= size;
    return count;
  }

  // The place in each dim at which the part of the device begins.
  std::vector<int64_t> begin(int64_t device) const {
    std::vector<int64_t> begins;
    for (size_t d = 0; d < whole_.size(); ++d) {
      int64_t place = 0;
      for (const MeshPort::Part& part : dims_[d])
        place = place * part.size + device / part.divisor % part.size;
      begins.push_back(place * part_[d]);
    }
    return begins;
  }

  // `run(offset in the whole, offset in the part, elements)` for each run of elements that lie side
  // by side in both. Padding is in no run.
  template <class Run>
  void each_run(int64_t device, const Run& run) const {
    const std::vector<int64_t> begins = begin(device);
    Ints have = part_;
    for (size_t d = 0; d < whole_.size(); ++d)
      have[d] = std::clamp<int64_t>(whole_[d] - begins[d], 0, part_[d]);
    if (std::ranges::any_of(have, [](int64_t size) { return size == 0; })) return;
    // Dims from here on are whole: they are one run.
    size_t outer = whole_.size();
    int64_t length = 1;
    while (outer > 0) {
      length *= have[--outer];
      if (have[outer] != whole_[outer]) break;
    }
    std::vector<int64_t> index(whole_.size(), 0);
    while (true) {
      int64_t in_whole = 0, in_part = 0;
      for (size_t d = 0; d < whole_.size(); ++d) {
        in_whole = in_whole * whole_[d] + begins[d] + index[d];
        in_part = in_part * part_[d] + index[d];
      }
      run(in_whole, in_part, length);
      size_t d = outer;
      while (d > 0 && ++index[d - 1] == have[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }

  // Calls `run(device)` for the first device that has each part.
  template <class Run>
  void each_first(int64_t devices, const Run& run) const {
    std::set<std::vector<int64_t>> places;
    for (int64_t device = 0; device < devices; ++device)
      if (places.insert(begin(device)).second) run(device);
  }

 private:
  const std::vector<std::vector<MeshPort::Part>>& dims_;
  const Ints whole_;
  const Ints part_;
};

struct Numbers {
  std::vector<double> reals;
  std::vector<int64_t> integers;

  static Numbers of(const Tensor& tensor) {
    Numbers made;
    const auto count = static_cast<size_t>(tensor.elements());
    if (is_real(tensor.dtype())) {
      made.reals.resize(count);
      tensor.read_reals(0, std::span(made.reals));
    } else {
      made.integers.resize(count);
      tensor.read_integers(0, made.integers);
    }
    return made;
  }
  static Numbers zeros(Type type) {
    const auto count = static_cast<size_t>(type.static_elements());
    Numbers made;
    if (is_real(type.dtype()))
      made.reals.resize(count);
    else
      made.integers.resize(count);
    return made;
  }
  void take(const Numbers& from, int64_t at, int64_t begin, int64_t count) {
    const auto copy = [&](const auto& source, auto& target) {
      if (!source.empty()) std::copy_n(source.begin() + begin, count, target.begin() + at);
    };
    copy(from.reals, reals);
    copy(from.integers, integers);
  }
  Tensor tensor(Type type) const {
    return is_real(type.dtype()) ? Tensor::from_reals(type, reals)
                                 : Tensor::from_integers(type, integers);
  }
};

// `each(take)` calls take(tensor, place in the result, place in the tensor, elements).
template <class Each>
Tensor copied(std::span<const Tensor> from, Type to, const Each& each) {
  const int width = bits(to.dtype());
  if (width % 8 == 0) {
    Tensor made = Tensor::zeros(to);
    const std::span<std::byte> target = made.mutable_bytes();
    const int64_t bytes = width / 8;
    each([&](size_t tensor, int64_t at, int64_t begin, int64_t count) {
      std::copy_n(from[tensor].bytes().begin() + begin * bytes, count * bytes,
                  target.begin() + at * bytes);
    });
    return made;
  }
  std::vector<Numbers> sources;
  for (const Tensor& one : from) sources.push_back(Numbers::of(one));
  Numbers made = Numbers::zeros(to);
  each([&](size_t tensor, int64_t at, int64_t begin, int64_t count) {
    made.take(sources[tensor], at, begin, count);
  });
  return made.tensor(to);
}

// The ports that each device has a part of, as all of them together have them.
Status check_ports(std::span<const MeshPort> ports, std::span<const image::Port> all,
                   int64_t devices, std::string_view what) {
  if (ports.size() != all.size())
    return bad_input("the mesh divides {} {}s, and the devices have {}", ports.size(), what,
                     all.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const Type part = ports[i].part();
    const bool is_once = !ports[i].is_divided() && all[i].type == part;
    if (!is_once && (part.rank() == 0 || all[i].type != type_of_all(part, devices)))
      return bad_input("{} {} of all devices is {}, and each has {}", what, i,
                       all[i].type.to_string(), part.to_string());
  }
  return {};
}

Status check_port(const MeshPort& port, int64_t devices) {
  const Type type = port.whole.type;
  if (!type.is_static()) return bad_input("{} has open sizes", type.to_string());
  if (std::ssize(port.dims) != type.rank())
    return bad_input("{} dims of {} are divided", port.dims.size(), type.to_string());
  std::vector<MeshPort::Part> all;
  for (const std::vector<MeshPort::Part>& parts : port.dims)
    all.insert(all.end(), parts.begin(), parts.end());
  std::ranges::sort(all, {}, &MeshPort::Part::divisor);
  // Each part has digits of the number of a device that no other one has.
  int64_t end = 1;
  for (const MeshPort::Part& part : all) {
    if (part.size < 2 || part.size > devices || part.divisor < 1 || part.divisor > devices ||
        part.divisor % end != 0 || devices % (part.divisor * part.size) != 0)
      return bad_input("{} devices have no part {} of {}", devices, part.divisor, part.size);
    end = part.divisor * part.size;
  }
  for (int d = 0; d < type.rank(); ++d) {
    const int64_t size = type.dim(d).value();
    if (const int64_t count = count_of_parts(port.dims[static_cast<size_t>(d)]);
        count > 1 && count > size)
      return bad_input("{} parts of dim {} of {}", count, d, type.to_string());
  }
  const Type part = port.part();
  if (part.rank() > 0 && (part.dim(0).value() > kDimLimit / devices ||
                          part.static_elements() > kMaxElements / devices))
    return over_limit("{} on {} devices", part.to_string(), devices);
  return {};
}

}  // namespace

bool MeshPort::is_divided() const {
  return std::ranges::any_of(dims, [](const auto& parts) { return !parts.empty(); });
}

Type MeshPort::part() const {
  Dims sizes(whole.type.dims().begin(), whole.type.dims().end());
  for (size_t d = 0; d < sizes.size(); ++d)
    sizes[d] = ceil_div(sizes[d].value(), count_of_parts(dims[d]));
  return whole.type.with_dims(sizes);
}

int64_t MeshDivision::devices() const {
  int64_t all = 1;
  for (const Axis& axis : axes) all *= axis.devices;
  return all;
}

std::string MeshDivision::mesh_text() const {
  std::vector<std::string> all;
  for (const Axis& axis : axes)
    all.push_back(fmt::format("{}={}", axis_text(axis.name), axis.devices));
  return join(all, ",");
}

Status check(const MeshDivision& division) {
  int64_t devices = 1;
  for (const MeshDivision::Axis& axis : division.axes) {
    if (axis.devices < 1 || axis.devices > BatchDivision::kMaxShares / devices)
      return bad_input("the axis '{}' of a mesh has {} devices; all have {} at most",
                       excerpt(axis.name), axis.devices, BatchDivision::kMaxShares);
    devices *= axis.devices;
  }
  for (const auto* ports : {&division.inputs, &division.outputs})
    for (const MeshPort& port : *ports)
      if (Status good = check_port(port, devices); !good.ok())
        return std::move(good).error().about(fmt::format("'{}'", excerpt(port.whole.name)));
  return {};
}

Status check(const MeshDivision& division, std::span<const image::Port> inputs,
             std::span<const image::Port> outputs) {
  HONE_TRY(check_ports(division.inputs, inputs, division.devices(), "input"));
  return check_ports(division.outputs, outputs, division.devices(), "output");
}

std::vector<image::Port> ports_of_all(std::span<const MeshPort> ports, std::span<const int> dims,
                                      int64_t devices) {
  std::vector<image::Port> made;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Type part = ports[i].part();
    const bool differs = i < dims.size() && dims[i] == 0 && part.rank() > 0;
    made.push_back({ports[i].whole.name, differs ? type_of_all(part, devices) : part});
  }
  return made;
}

Tensor part_of(const Tensor& whole, const MeshPort& port, int64_t device) {
  if (!port.is_divided()) return whole;
  const PartCopy copy(port);
  return copied({&whole, 1}, port.part(), [&](const auto& take) {
    copy.each_run(device, [&](int64_t in_whole, int64_t in_part, int64_t count) {
      take(0, in_part, in_whole, count);
    });
  });
}

Tensor whole_of(std::span<const Tensor> parts, const MeshPort& port) {
  if (!port.is_divided()) return parts[0];
  const PartCopy copy(port);
  return copied(parts, port.whole.type, [&](const auto& take) {
    copy.each_first(std::ssize(parts), [&](int64_t device) {
      copy.each_run(device, [&](int64_t in_whole, int64_t in_part, int64_t count) {
        take(static_cast<size_t>(device), in_whole, in_part, count);
      });
    });
  });
}

Tensor parts_of_all(const Tensor& whole, const MeshPort& port, int64_t devices) {
  if (whole.type().rank() == 0) return whole;
  const PartCopy copy(port);
  return copied({&whole, 1}, type_of_all(port.part(), devices), [&](const auto& take) {
    for (int64_t device = 0; device < devices; ++device)
      copy.each_run(device, [&](int64_t in_whole, int64_t in_part, int64_t count) {
        take(0, device * copy.part_elements() + in_part, in_whole, count);
      });
  });
}

Tensor whole_of_parts(const Tensor& parts, const MeshPort& port, int64_t devices) {
  if (port.whole.type.rank() == 0) return parts;
  const PartCopy copy(port);
  return copied({&parts, 1}, port.whole.type, [&](const auto& take) {
    copy.each_first(devices, [&](int64_t device) {
      copy.each_run(device, [&](int64_t in_whole, int64_t in_part, int64_t count) {
        take(0, in_whole, device * copy.part_elements() + in_part, count);
      });
    });
  });
}

Result<std::shared_ptr<const MeshModel>> MeshModel::make(
    MeshDivision division, std::span<const Tensor> constants,
    std::shared_ptr<const ManyDevices> devices) {
  HONE_TRY(check(division));
  HONE_TRY(check(division, devices->inputs(), devices->outputs()));
  if (constants.size() > division.inputs.size())
    return bad_input("{} constants of {} inputs", constants.size(), division.inputs.size());
  const size_t own = division.inputs.size() - constants.size();
  for (size_t i = 0; i < constants.size(); ++i)
    if (const Type wanted = division.inputs[own + i].whole.type; constants[i].type() != wanted)
      return bad_input("constant {} is {}, not {}", i, constants[i].type().to_string(),
                       wanted.to_string());
  return std::shared_ptr<const MeshModel>(
      new MeshModel(std::move(division), constants, std::move(devices)));
}

MeshModel::MeshModel(MeshDivision division, std::span<const Tensor> constants,
                     std::shared_ptr<const ManyDevices> devices)
    : division_(std::move(division)), devices_(std::move(devices)) {
  const size_t own = division_.inputs.size() - constants.size();
  for (size_t i = 0; i < own; ++i) inputs_.push_back(division_.inputs[i].whole);
  for (const MeshPort& port : division_.outputs) outputs_.push_back(port.whole);
  for (size_t i = 0; i < constants.size(); ++i) constants_.push_back(given(constants[i], own + i));
}

// An input of which no device has a part of its own may be given once for all.
Tensor MeshModel::given(const Tensor& whole, size_t input) const {
  const MeshPort& port = division_.inputs[input];
  if (!port.is_divided() && devices_->inputs()[input].type == whole.type()) return whole;
  return parts_of_all(whole, port, division_.devices());
}

std::vector<Tensor> MeshModel::parts(std::span<const Tensor> inputs) const {
  std::vector<Tensor> made;
  for (size_t i = 0; i < inputs.size(); ++i) made.push_back(given(inputs[i], i));
  made.insert(made.end(), constants_.begin(), constants_.end());
  return made;
}

Result<std::vector<Tensor>> MeshModel::run(std::span<const Tensor> inputs,
                                           const RunOptions& options,
                                           std::vector<UnitTimes>* times) const {
  if (inputs.size() != inputs_.size())
    return bad_input("the model takes {} inputs, {} are given", inputs_.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].type() != inputs_[i].type)
      return bad_input("input '{}' is {}, not {}", inputs_[i].name, inputs_[i].type.to_string(),
                       inputs[i].type().to_string());
  const std::vector<Tensor> given = parts(inputs);
  const std::vector<Tensor> made = HONE_TRY(devices_->run(given, options, times));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < made.size(); ++i)
    outputs.push_back(whole_of_parts(made[i], division_.outputs[i], division_.devices()));
  return outputs;
}

}  // namespace hone
