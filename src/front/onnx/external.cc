#include "front/onnx/external.h"

#include <set>

#include "base/text.h"

namespace hone::onnx_io {

namespace {

Result<int64_t> byte_count(std::string_view key, std::string_view text) {
  const Result<int64_t> value = parse_int(text);
  if (!value.ok()) {
    return bad_input("external_data: {} {} is not a number", key, hone::quoted(text));
  }
  if (*value < 0) return bad_input("external_data: {} {} is below 0", key, *value);
  return *value;
}

}  // namespace

Result<ExternalPlace> external_place(const onnx::TensorProto& proto) {
  ExternalPlace place;
  std::set<std::string_view> seen;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    const std::string& key = entry.key();
    if (!seen.insert(key).second)
      return bad_input("external_data: {} is given twice", hone::quoted(key));
    if (key == "location") {
      place.location = entry.value();
    } else if (key == "offset") {
      place.offset = HONE_TRY(byte_count(key, entry.value()));
    } else if (key == "length") {
      place.length = HONE_TRY(byte_count(key, entry.value()));
    } else if (key != "checksum") {
      return unsupported("external_data: key {} is not known", hone::quoted(key));
    }
  }
  if (!seen.contains("location")) return bad_input("external_data has no location");
  return place;
}

Result<std::shared_ptr<const MappedFile>> ExternalFiles::map(const std::string& location) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const MappedFile>& file = files_[location];
  if (file == nullptr) {
    file = std::make_shared<const MappedFile>(HONE_TRY(map_contained(folder_, location)));
  }
  return file;
}

}  // namespace hone::onnx_io
