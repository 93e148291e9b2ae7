#include "log/pages.h"

#include <algorithm>
#include <bit>

namespace hone::sqlite {

namespace {

constexpr size_t kHeaderBytes = 100;  // of the file, in front of its first page's node

constexpr size_t kLeastCell = 6;      // bytes in a node, with its place
constexpr size_t kMostHeader = 1000;  // bytes of a record's header: no log has more columns

// The first byte of a node. "B-tree Pages"
enum Kind : uint8_t { kIndexInner = 2, kTableInner = 5, kIndexLeaf = 10, kTableLeaf = 13 };

// Reads bytes from the front; `good` once there were too few.
struct Reader {
  std::string_view rest;
  bool good = true;

  // Big-endian, with its sign.
  int64_t integer(size_t bytes) {
    if (rest.size() < bytes) {
      good = false;
      return 0;
    }
    uint64_t value = bytes > 0 && static_cast<unsigned char>(rest[0]) >= 0x80 ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(rest[i]);
    rest.remove_prefix(bytes);
    return static_cast<int64_t>(value);
  }
  uint32_t page() { return static_cast<uint32_t>(integer(4)); }
  uint32_t half() { return static_cast<uint32_t>(integer(2)) & 0xffff; }

  // Seven bits a byte, the first ones first; a ninth byte has eight.
  uint64_t varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < 9; ++i) {
      if (i >= rest.size()) break;
      const uint8_t byte = static_cast<uint8_t>(rest[i]);
      value = i == 8 ? value << 8 | byte : value << 7 | (byte & 0x7f);
      if (i == 8 || byte < 0x80) {
        rest.remove_prefix(i + 1);
        return value;
      }
    }
    good = false;
    return 0;
  }
};

// The size of a value by its type, in bytes. "Record Format"
uint64_t size_of(uint64_t type) {
  constexpr uint64_t kFixed[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < std::size(kFixed) ? kFixed[type] : (type - 12) / 2;
}

Value value_of(uint64_t type, std::string_view bytes) {
  if (type == 0) return nullptr;
  if (type == 8 || type == 9) return static_cast<int64_t>(type - 8);
  if (type >= 12 && type % 2 == 1) return bytes;
  if (type >= 12) return std::as_bytes(std::span(bytes));
  const int64_t number = Reader{bytes}.integer(bytes.size());
  if (type == 7) return std::bit_cast<double>(number);
  return number;
}

}  // namespace

struct PageFile::Node {
  Kind kind;
  std::string_view places;  // of its cells, two bytes each
  uint32_t last_child = 0;  // of an inner one

  bool is_leaf() const { return kind == kIndexLeaf || kind == kTableLeaf; }
  bool is_table() const { return kind == kTableInner || kind == kTableLeaf; }
};

PageFile::PageFile(std::string_view bytes, size_t page_bytes, size_t usable)
    : bytes_(bytes),
      page_bytes_(page_bytes),
      usable_(usable),
      pages_(static_cast<uint32_t>(std::min<size_t>(bytes.size() / page_bytes, UINT32_MAX - 1))),
      budget_(8 * uint64_t{pages_} + 1000) {}

// "The Database Header"
Result<PageFile> PageFile::of(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return bad_input("a database of {} bytes", bytes.size());
  const size_t said = Reader{bytes.substr(16)}.half();
  const size_t page_bytes = said == 1 ? 65536 : said;
  const size_t reserved = static_cast<unsigned char>(bytes[20]);
  if (page_bytes < 512 || !std::has_single_bit(page_bytes) || page_bytes - reserved < 480)
    return bad_input("pages of {} bytes, {} of them reserved", page_bytes, reserved);
  return PageFile(bytes, page_bytes, page_bytes - reserved);
}

// Pages count from 1.
std::string_view PageFile::content(uint32_t page) const {
  if (page == 0 || page > pages_) return {};
  return bytes_.substr((page - 1) * page_bytes_, usable_);
}

std::optional<PageFile::Node> PageFile::node(uint32_t page) const {
  std::string_view rest = content(page);
  if (rest.empty()) return std::nullopt;
  if (page == 1) rest.remove_prefix(kHeaderBytes);
  Node node = {.kind = static_cast<Kind>(rest[0]), .places = {}};
  if (node.kind != kIndexInner && node.kind != kTableInner && !node.is_leaf()) return std::nullopt;
  Reader header{rest.substr(3)};
  const size_t cells = header.half();
  header.rest.remove_prefix(3);  // where cells begin, and how many bytes are free in between
  if (!node.is_leaf()) node.last_child = header.page();
  if (header.rest.size() / kLeastCell < cells) return std::nullopt;
  node.places = header.rest.substr(0, 2 * cells);
  return node;
}

// False: one of them lies outside of the page.
bool PageFile::add_cells(const Node& node, uint32_t page, std::vector<Cell>& cells,
                         std::vector<uint32_t>& children) const {
  const std::string_view all = content(page);
  bool is_good = true;
  for (Reader places{node.places}; !places.rest.empty();) {
    const size_t at = places.half();
    Reader cell{all.substr(std::min(at, all.size()))};
    if (!node.is_leaf()) children.push_back(cell.page());
    const std::string_view payload = cell.rest;
    // No entry is empty: that is what zeros in the place of a lost part would say.
    const bool is_empty = node.kind != kTableInner && cell.varint() == 0;
    const int64_t id = node.is_table() ? static_cast<int64_t>(cell.varint()) : 0;
    const bool is_there = cell.good && !is_empty;
    is_good = is_good && is_there;
    if (!is_there || node.kind == kTableInner) continue;
    cells.push_back({page, static_cast<uint32_t>(payload.data() - all.data()), id});
  }
  return is_good;
}

Tree PageFile::tree(uint32_t root, std::vector<bool>& is_marked) const {
  const std::optional<Node> top = node(root);
  Tree tree;
  if (!top) return tree;
  tree.is_table = top->is_table();
  tree.is_whole = true;
  std::vector<uint32_t> open = {root};
  while (!open.empty()) {
    const uint32_t page = open.back();
    open.pop_back();
    const std::optional<Node> at = node(page);
    if (!at || at->is_table() != tree.is_table || is_marked[page]) {
      tree.is_whole = false;
      continue;
    }
    is_marked[page] = true;
    std::vector<uint32_t> children;
    if (!add_cells(*at, page, tree.cells, children)) tree.is_whole = false;
    if (!at->is_leaf()) children.push_back(at->last_child);
    open.insert(open.end(), children.rbegin(), children.rend());
  }
  return tree;
}

// "The Freelist": trunks, which follow one another, name the others.
void PageFile::mark_free(std::vector<bool>& is_marked) const {
  Reader header{content(1).substr(std::min<size_t>(32, content(1).size()))};
  uint32_t trunk = header.page();
  while (trunk != 0 && trunk <= pages_ && !is_marked[trunk]) {
    is_marked[trunk] = true;
    Reader list{content(trunk)};
    trunk = list.page();
    const uint32_t count = list.page();
    if (count > usable_ / 4 - 2) return;  // it is damaged
    for (uint32_t i = 0; i < count; ++i)
      if (const uint32_t page = list.page(); page <= pages_) is_marked[page] = true;
  }
}

std::vector<Cell> PageFile::table_leaf(uint32_t page) const {
  std::vector<Cell> cells;
  std::vector<uint32_t> none;
  const std::optional<Node> leaf = node(page);
  if (leaf && leaf->kind == kTableLeaf) add_cells(*leaf, page, cells, none);
  return cells;
}

// A payload that does not fit into its page goes on in others. "Cell Payload Overflow Pages"
bool PageFile::read_payload(const Cell& cell, std::string& payload) {
  const std::string_view all = content(cell.page);
  const bool is_table = node(cell.page)->is_table();
  Reader reader{all.substr(std::min<size_t>(cell.at, all.size()))};
  const uint64_t size = reader.varint();
  if (is_table) reader.varint();  // the id
  if (!reader.good || size > bytes_.size()) return false;
  const size_t most = is_table ? usable_ - 35 : (usable_ - 12) * 64 / 255 - 23;
  size_t local = size;
  if (size > most) {
    const size_t least = (usable_ - 12) * 32 / 255 - 23;
    local = least + (size - least) % (usable_ - 4);
    if (local > most) local = least;
  }
  if (reader.rest.size() < local) return false;
  payload.assign(reader.rest.substr(0, local));
  reader.rest.remove_prefix(local);
  uint32_t next = size > local ? reader.page() : 0;
  while (payload.size() < size) {
    Reader page{content(next)};
    next = page.page();
    if (!page.good || budget_ == 0) return false;
    --budget_;
    payload += page.rest.substr(0, size - payload.size());
  }
  return true;
}

std::vector<Value> PageFile::values(const Cell& cell, std::string& payload) {
  if (!read_payload(cell, payload)) return {};
  Reader sized{payload};
  const uint64_t header_size = sized.varint();
  const size_t size_bytes = payload.size() - sized.rest.size();
  if (!sized.good || header_size < size_bytes || header_size > payload.size()) return {};
  if (header_size > kMostHeader) return {};
  Reader header{std::string_view(payload).substr(size_bytes, header_size - size_bytes)};
  std::string_view data = std::string_view(payload).substr(header_size);
  std::vector<Value> values;
  while (!header.rest.empty()) {
    const uint64_t type = header.varint();
    const uint64_t size = size_of(type);
    if (!header.good || size > data.size()) return {};
    values.push_back(value_of(type, data.substr(0, size)));
    data.remove_prefix(size);
  }
  if (!data.empty()) return {};
  return values;
}

}  // namespace hone::sqlite
