#include "session/mesh_model.h"

#include <algorithm>
#include <set>

#include "compile/divided_code.h"
#include "ir/op_def.h"
#include "shard/node_division.h"

namespace hone {
namespace {

// Elements as they are copied: whole bytes, or numbers of a type that has fewer bits.
class PartCopy {
 public:
  PartCopy(Type whole, const ShardLayout& layout, const Mesh& mesh)
      : layout_(layout), mesh_(mesh), whole_(whole.static_dims()) {
    part_ = local_type(whole, layout).static_dims();
  }

  int64_t part_elements() const {
    int64_t count = 1;
    for (const int64_t size : part_) count *= size;
    return count;
  }

  // The place in each dim at which the part of the device begins.
  std::vector<int64_t> begin(int64_t device) const {
    std::vector<int64_t> begins;
    for (size_t d = 0; d < whole_.size(); ++d)
      begins.push_back(first_element(mesh_, layout_.dims[d], whole_[d], device));
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

 private:
  const ShardLayout& layout_;
  const Mesh& mesh_;
  const Ints whole_;
  Ints part_;
};

Type type_of_all(Type part, int64_t devices) {
  Dims dims(part.dims().begin(), part.dims().end());
  dims[0] = dims[0].value() * devices;
  return part.with_dims(dims);
}

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

// `each(take)` calls take(place in the result, place in the source, elements).
template <class Each>
Tensor copied(const Tensor& from, Type to, const Each& each) {
  const int width = bits(from.dtype());
  if (width % 8 == 0) {
    Tensor made = Tensor::zeros(to);
    const std::span<std::byte> target = made.mutable_bytes();
    const std::span<const std::byte> source = from.bytes();
    const int64_t bytes = width / 8;
    each([&](int64_t at, int64_t begin, int64_t count) {
      std::copy_n(source.begin() + begin * bytes, count * bytes, target.begin() + at * bytes);
    });
    return made;
  }
  const Numbers source = Numbers::of(from);
  Numbers made = Numbers::zeros(to);
  each([&](int64_t at, int64_t begin, int64_t count) { made.take(source, at, begin, count); });
  return made.tensor(to);
}

}  // namespace

Tensor parts_of_all(const Tensor& whole, const ShardLayout& layout, const Mesh& mesh) {
  if (whole.type().rank() == 0) return whole;
  const int64_t devices = mesh.device_count();
  const PartCopy copy(whole.type(), layout, mesh);
  const Type all = type_of_all(local_type(whole.type(), layout), devices);
  return copied(whole, all, [&](const auto& take) {
    for (int64_t device = 0; device < devices; ++device)
      copy.each_run(device, [&](int64_t in_whole, int64_t in_part, int64_t count) {
        take(device * copy.part_elements() + in_part, in_whole, count);
      });
  });
}

Tensor whole_of_parts(const Tensor& parts, Type whole, const ShardLayout& layout,
                      const Mesh& mesh) {
  if (whole.rank() == 0) return parts;
  const PartCopy copy(whole, layout, mesh);
  return copied(parts, whole, [&](const auto& take) {
    std::set<std::vector<int64_t>> places;
    for (int64_t device = 0; device < mesh.device_count(); ++device) {
      if (!places.insert(copy.begin(device)).second) continue;
      copy.each_run(device, [&](int64_t in_whole, int64_t in_part, int64_t count) {
        take(in_whole, device * copy.part_elements() + in_part, count);
      });
    }
  });
}

std::vector<std::string> divided_inputs(const Partition& partition) {
  std::vector<std::string> names;
  for (size_t i = 0; i < partition.inputs.size(); ++i)
    if (std::ranges::any_of(partition.inputs[i].dims,
                            [](const MeshParts& parts) { return !parts.empty(); }))
      names.emplace_back(partition.graph.name(partition.graph.inputs()[i]));
  return names;
}

MeshModel::MeshModel(const Graph& graph, const ShardedModel& model,
                     std::shared_ptr<const ManyDevices> devices)
    : mesh_(model.partition.mesh),
      input_layouts_(model.partition.inputs),
      output_layouts_(model.partition.outputs),
      devices_(std::move(devices)),
      inputs_(ports_of(graph, graph.inputs(), "input")),
      outputs_(ports_of(graph, graph.outputs(), "output")) {
  for (const Tensor& constant : model.subject.constants)
    constants_.push_back(given(constant, inputs_.size() + constants_.size()));
}

// An input of which no device has a part of its own may be given once for all.
Tensor MeshModel::given(const Tensor& whole, size_t input) const {
  const ShardLayout& layout = input_layouts_[input];
  const bool is_whole = layout == undivided(whole.type());
  if (is_whole && devices_->inputs()[input].type == whole.type()) return whole;
  return parts_of_all(whole, layout, *mesh_);
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
    outputs.push_back(whole_of_parts(made[i], outputs_[i].type, output_layouts_[i], *mesh_));
  return outputs;
}

}  // namespace hone
