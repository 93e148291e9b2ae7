#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/image.h"
#include "runtime/segments.h"

namespace hone::honec {

// The values of a section, as honec::Cursor reads them.
class Values {
 public:
  void number(int64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof bytes);
  }
  void count(size_t value) { number(static_cast<int64_t>(value)); }
  void text(std::string_view value) {
    count(value.size());
    text_.append(value);
  }
  // From then on, sizes are texts if there are symbols.
  void symbols(const std::vector<Symbol>& symbols) {
    has_symbols_ = !symbols.empty();
    count(symbols.size());
    for (Symbol symbol : symbols) {
      text(symbol.name());
      number(symbol.min());
      number(symbol.max());
      number(symbol.multiple_of());
    }
  }
  void size(Dim size) {
    if (has_symbols_)
      text(size.to_string());
    else
      number(size.value());
  }
  void sizes(const std::vector<Dim>& sizes) {
    count(sizes.size());
    for (Dim one : sizes) size(one);
  }
  void type(Type type) {
    text(name(type.dtype()));
    number(type.rank());
    for (Dim dim : type.dims()) size(dim);
  }
  // Whose dims are numbers, also in a program that has symbols.
  void static_type(Type type) {
    text(name(type.dtype()));
    number(type.rank());
    for (int64_t dim : type.static_dims()) number(dim);
  }
  void ports(std::span<const image::Port> ports) {
    count(ports.size());
    for (const image::Port& port : ports) {
      text(port.name);
      type(port.type);
    }
  }
  void types(std::span<const image::Port> ports) {
    count(ports.size());
    for (const image::Port& port : ports) type(port.type);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  bool has_symbols_ = false;
};

// The section of segments. Unsupported if they lie deeper in one another than the format has.
Result<std::string> text_of(const SegmentTree& tree);

}  // namespace hone::honec
