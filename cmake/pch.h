// Precompiled for speed. Sources include what they use all the same: `tools/headers.sh --sources`.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "ir/builder.h"
#include "ir/functional.h"
#include "ir/model.h"
