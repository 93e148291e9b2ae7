#pragma once

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "front/front_end.h"
#include "ir/model.h"

// Models as files: the text format in NAME.hone, and the weights in NAME.npz beside it.

namespace hone {

// Verified. Weights stay mapped until they are read.
Result<Model> load_model(const std::filesystem::path& path);

// The files written: the text, and the weights if there are large constants. Atomic for each of the
// two; the weights come first, so that the text is not there without them.
Result<std::vector<std::filesystem::path>> save_model(const std::filesystem::path& path,
                                                      const Model& model);

// Its row of front_end.cc.
FrontEnd text_front_end();

}  // namespace hone
