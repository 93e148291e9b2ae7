#pragma once

#include <filesystem>

#include "base/error.h"
#include "ir/model.h"

// Models as files: the text format in NAME.hone, and the weights in NAME.npz beside it.

namespace hone {

// Verified. Weights stay mapped until they are read.
Result<Model> load_model(const std::filesystem::path& path);

// Atomic for each of the two files; the text is written last. A model without large constants has
// no second file.
Status save_model(const std::filesystem::path& path, const Model& model);

}  // namespace hone
