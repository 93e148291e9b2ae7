#include "runtime/open_image.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

namespace {

using image::Place;
using Visit = std::function<void(int64_t&)>;

void visit_place(Place& place, const Visit& visit) {
  visit(place.offset);
  visit(place.bytes);
  for (image::Step& step : place.steps) visit(step.stride);
}

void visit_block(image::Block& block, const Visit& visit);

struct VisitCommand {
  const Visit& visit;

  void operator()(image::Launch& launch) const {
    for (Place& place : launch.buffers) visit_place(place, visit);
    for (int64_t& symbol : launch.symbols) visit(symbol);
  }
  void operator()(image::Copy& copy) const {
    visit_place(copy.from, visit);
    visit_place(copy.to, visit);
  }
  void operator()(image::Start& start) const {
    visit_place(start.from, visit);
    visit_place(start.to, visit);
  }
  void operator()(image::Wait& /*wait*/) const {}
  void operator()(image::Send& send) const { visit_place(send.from, visit); }
  void operator()(image::Receive& receive) const { visit_place(receive.to, visit); }
  void operator()(image::DeviceIndex& index) const { visit_place(index.to, visit); }
  void operator()(image::Branch& branch) const {
    visit_place(branch.condition, visit);
    visit_block(branch.on_true, visit);
    visit_block(branch.on_false, visit);
  }
  void operator()(image::While& loop) const {
    visit_block(loop.test, visit);
    visit_place(loop.condition, visit);
    visit_block(loop.body, visit);
  }
  void operator()(image::Repeat& repeat) const {
    visit(repeat.trips);
    visit_block(repeat.body, visit);
  }
};

void visit_block(image::Block& block, const Visit& visit) {
  for (image::Command& command : block) std::visit(VisitCommand{visit}, command.kind);
}

Result<int64_t> number_of(Dim dim, const Bindings& sizes) {
  const Dim bound = dim.bind(sizes);
  if (bound.is_static()) return bound.value();
  return bad_input("the size '{}' has no value", bound.symbols()[0].name());
}

Status bind_all(std::vector<image::Port>& ports, const Bindings& sizes) {
  for (image::Port& port : ports) {
    port.type = HONE_TRY(port.type.bind(sizes));
    if (!port.type.is_static()) return bad_input("'{}' has an open size", excerpt(port.name));
  }
  return {};
}

}  // namespace

void each_number(Image& image, const Visit& visit) {
  for (image::Kernel& kernel : image.kernels) {
    visit(kernel.scratch_bytes);
    for (image::Phase& phase : kernel.phases) visit(phase.trips);
  }
  visit_block(image.commands, visit);
}

std::vector<Symbol> symbols_of(const OpenImage& open) {
  std::vector<Symbol> all;
  const auto add = [&](Dim dim) {
    if (dim.is_static()) return;
    for (Symbol symbol : dim.symbols())
      if (std::ranges::find(all, symbol) == all.end()) all.push_back(symbol);
  };
  for (const auto* ports : {&open.image.inputs, &open.image.outputs})
    for (const image::Port& port : *ports) std::ranges::for_each(port.type.dims(), add);
  std::ranges::for_each(open.numbers, add);
  std::ranges::for_each(open.arena, add);
  return all;
}

Result<Image> bound_image(const OpenImage& open, const Bindings& sizes) {
  std::vector<int64_t> numbers;
  for (Dim number : open.numbers) numbers.push_back(HONE_TRY(number_of(number, sizes)));
  Image image = open.image;
  for (Dim bytes : open.arena)
    image.arena_bytes = std::max(image.arena_bytes, HONE_TRY(number_of(bytes, sizes)));
  HONE_TRY(bind_all(image.inputs, sizes));
  HONE_TRY(bind_all(image.outputs, sizes));
  Status good;
  each_number(image, [&](int64_t& number) {
    if (number >= 0 && number < static_cast<int64_t>(numbers.size()))
      number = numbers[static_cast<size_t>(number)];
    else
      good = bad_input("number {} does not exist: there are {}", number, numbers.size());
  });
  HONE_TRY(std::move(good));
  return image;
}

namespace {

// Adds the sizes that follow; `how` says where `type` comes from.
Status match_port(std::string_view sort, const image::Port& port, Type type, std::string_view how,
                  Bindings& sizes) {
  const Type wanted = port.type;
  const auto mismatch = [&](std::string_view why) {
    return bad_input("{} '{}' is {}, but {} {}{}", sort, excerpt(port.name), wanted.to_string(),
                     type.to_string(), how, why);
  };
  if (type.dtype() != wanted.dtype() || type.rank() != wanted.rank()) return mismatch("");
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    const Status good = match_dim(wanted.dim(axis).bind(sizes), type.dim(axis).value(), sizes);
    if (!good.ok()) return mismatch(fmt::format(": axis {}: {}", axis, good.error().what()));
  }
  return {};
}

}  // namespace

Result<Bindings> bind_ports(std::span<const image::Port> ports, std::span<const Type> types) {
  if (types.size() != ports.size())
    return bad_input("the model takes {} inputs, but {} are given", ports.size(), types.size());
  Bindings sizes;
  // Twice: a size such as N + M says nothing about N before M is known.
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < ports.size(); ++i)
      HONE_TRY(match_port("input", ports[i], types[i], "is given", sizes));
  return sizes;
}

Status check_output(const image::Port& port, Type type, Bindings& sizes) {
  return match_port("output", port, type, "was computed", sizes);
}

}  // namespace hone
