#include "runtime/division.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace hone {

namespace {

Status check_rows(std::span<const image::Port> ports, std::span<const int> dims, int64_t rows) {
  if (ports.size() != dims.size())
    return bad_input("it says where {} inputs or outputs have rows, but there are {}", dims.size(),
                     ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const Type type = ports[i].type;
    const int dim = dims[i];
    if (!type.is_static() || dim < -1 || dim >= type.rank() ||
        (dim >= 0 && (rows < 1 || type.dim(dim).value() % rows != 0)))
      return bad_input("'{}' is {}, which has no {} rows along dim {}", ports[i].name,
                       type.to_string(), rows, dim);
  }
  return {};
}

// True if the block has a command of one of these kinds.
template <class... Kinds>
bool has(const image::Block& block) {
  return std::ranges::any_of(block, [](const image::Command& command) {
    if (const auto* branch = std::get_if<image::Branch>(&command.kind))
      return has<Kinds...>(branch->on_true) || has<Kinds...>(branch->on_false);
    if (const auto* loop = std::get_if<image::While>(&command.kind))
      return has<Kinds...>(loop->test) || has<Kinds...>(loop->body);
    if (const auto* repeat = std::get_if<image::Repeat>(&command.kind))
      return has<Kinds...>(repeat->body);
    return (std::holds_alternative<Kinds>(command.kind) || ...);
  });
}

// Lists what a block begins to exchange. A loop that exchanges nothing says nothing.
void list_meetings(const image::Block& block, std::vector<std::string>& all) {
  const auto within = [&](std::string what, const image::Block& body) {
    const size_t before = all.size();
    all.push_back(std::move(what));
    list_meetings(body, all);
    if (all.size() == before + 1)
      all.pop_back();
    else
      all.emplace_back("end");
  };
  for (const image::Command& command : block) {
    if (const auto* start = std::get_if<image::Start>(&command.kind))
      all.push_back(fmt::format("{} of {} bytes of {}", to_string(start->collective),
                                start->to.bytes, name(start->dtype)));
    if (const auto* branch = std::get_if<image::Branch>(&command.kind)) {
      within("if", branch->on_true);
      within("else", branch->on_false);
    }
    if (const auto* loop = std::get_if<image::While>(&command.kind)) {
      within("test", loop->test);
      within("while", loop->body);
    }
    if (const auto* repeat = std::get_if<image::Repeat>(&command.kind))
      within(fmt::format("{} times", repeat->trips), repeat->body);
  }
}

}  // namespace

Type share_of(Type whole, int dim, int64_t rows, int64_t count) {
  if (dim < 0) return whole;
  Dims dims(whole.dims().begin(), whole.dims().end());
  Dim& size = dims[static_cast<size_t>(dim)];
  size = size.value() / rows * count;
  return whole.with_dims(dims);
}

Status check(const BatchDivision& division, std::span<const image::Port> inputs,
             std::span<const image::Port> outputs) {
  if (division.shares.empty()) return bad_input("no device has rows");
  HONE_TRY(check_rows(inputs, division.inputs, division.rows));
  HONE_TRY(check_rows(outputs, division.outputs, division.rows));
  int64_t first = 0;
  for (const BatchDivision::Share& share : division.shares) {
    if (share.first != first || share.count < 0 || share.count > division.rows - first)
      return bad_input("a device has {} of {} rows from row {} on, but row {} is the next",
                       share.count, division.rows, share.first, first);
    first += share.count;
  }
  if (first == division.rows) return {};
  return bad_input("the devices have {} of {} rows", first, division.rows);
}

bool exchange_data(std::span<const Image> images) {
  return std::ranges::any_of(images, [](const Image& image) {
    return has<image::Start, image::Send, image::Receive, image::DeviceIndex>(image.commands);
  });
}

Status check_meetings(std::span<const Image> images) {
  std::vector<std::string> expected;
  for (const Image& image : images) {
    if (has<image::Send, image::Receive>(image.commands))
      return unsupported("devices that divide a batch send no messages");
    std::vector<std::string> listed;
    list_meetings(image.commands, listed);
    if (&image == images.data())
      expected = std::move(listed);
    else if (listed != expected)
      return bad_input("devices exchange other things, or in another order");
  }
  return {};
}

}  // namespace hone
