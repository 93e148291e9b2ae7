#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/image.h"
#include "tensor/dim.h"

namespace hone {

// An Image whose numbers follow from sizes. The types of its ports may have symbols. All other
// numbers that sizes decide (each_number) are not the numbers themselves: they are places in
// `numbers`.
struct OpenImage {
  Image image;  // without arena_bytes
  std::vector<Dim> numbers;
  std::vector<Dim> arena;  // the bytes of the arena are the largest of these
};

// Calls `visit` for each number of the image that sizes may decide, in a fixed order: bytes of
// scratch, trips, symbols of launches, offsets and bytes of places, strides.
void each_number(Image& image, const std::function<void(int64_t&)>& visit);

// The symbols of its numbers and ports, each once. They have different names.
std::vector<Symbol> symbols_of(const OpenImage& open);

// The image for sizes that fit its symbols (check_binding); an error names a symbol that has none.
Result<Image> bound_image(const OpenImage& open, const Bindings& sizes);

// The sizes for which these ports have the types; their symbols occur in them alone. An error says
// which input does not fit.
Result<Bindings> bind_ports(std::span<const image::Port> ports, std::span<const Type> types);
// An error if the output of a run with these sizes has another type than its port. Sizes that no
// input has are those that data gives; they are added.
Status check_output(const image::Port& port, Type type, Bindings& sizes);

}  // namespace hone
