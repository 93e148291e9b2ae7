#include "front/hlo/device_list.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "base/text.h"

namespace hone::hlo {
namespace {

// "[2,4]", "(1,0)"
Ints integers(Cursor& cursor, std::string_view open, std::string_view close) {
  Ints numbers;
  cursor.expect(open, "a grid of devices");
  while (!cursor.accept(close)) {
    numbers.push_back(cursor.integer());
    if (!cursor.accept(",") && !cursor.sees(close)) cursor.expect(close, "a grid of devices");
  }
  return numbers;
}

int64_t count_of(const Cursor& cursor, const Ints& dims) {
  const bool positive = std::ranges::all_of(dims, [](int64_t size) { return size > 0; });
  const std::optional<int64_t> count = checked_product(dims);
  if (!positive || !count || *count > kMostDevices)
    cursor.refuse(
        bad_input("a grid of {} must have 1 to {} devices", join(dims, "x"), kMostDevices));
  return *count;
}

}  // namespace

DeviceList read_device_list(Cursor& cursor) {
  DeviceList list = {.dims = integers(cursor, "[", "]")};
  const int64_t count = count_of(cursor, list.dims);
  if (!cursor.accept("<=")) {
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) cursor.expect(",", "a device");
      list.devices.push_back(cursor.integer());
    }
    Ints sorted = list.devices;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end() || sorted[0] < 0 ||
        sorted.back() >= kMostDevices)
      cursor.refuse(bad_input("the devices of a list must be different numbers from 0"));
    return list;
  }
  list.source = integers(cursor, "[", "]");
  if (count_of(cursor, list.source) != count)
    cursor.refuse(bad_input("a grid of {} cannot hold the devices of {}", join(list.dims, "x"),
                            join(list.source, "x")));
  const size_t rank = list.source.size();
  list.order.resize(rank);
  std::iota(list.order.begin(), list.order.end(), 0);
  if (cursor.accept("T")) {
    Ints order = integers(cursor, "(", ")");
    if (!std::ranges::is_permutation(order, list.order))
      cursor.refuse(bad_input("'T({})' does not put {} dims in order", join(order, ","), rank));
    list.order = std::move(order);
  }
  // Row-major over the dims in their new order.
  Ints stride(rank, 1);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * list.source[i];
  Ints place(rank, 0);
  for (int64_t done = 0; done < count; ++done) {
    int64_t device = 0;
    for (size_t i = 0; i < rank; ++i)
      device += place[i] * stride[static_cast<size_t>(list.order[i])];
    list.devices.push_back(device);
    for (size_t i = rank; i-- > 0;) {
      if (++place[i] < list.source[static_cast<size_t>(list.order[i])]) break;
      place[i] = 0;
    }
  }
  return list;
}

}  // namespace hone::hlo
