#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "front/front_end.h"
#include "ir/model.h"

// Programs of StableHLO and HLO, as text. docs/stablehlo.md says how to get the text.

namespace hone {

// Verified. The model is the function `main`, or the only one that is not private.
Result<Model> load_hlo(const std::filesystem::path& path, const ImportOptions& options = {});
Result<Model> parse_hlo(std::string_view text, std::string_view where,
                        const ImportOptions& options = {});

// Its row of front_end.cc.
FrontEnd hlo_front_end();

// A row of the table of ops.
struct HloOp {
  std::string_view stablehlo;
  std::string_view hlo;  // "": HLO has no such op
};
std::vector<HloOp> hlo_ops();

}  // namespace hone
