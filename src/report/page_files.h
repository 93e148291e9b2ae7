#pragma once

#include <string_view>

namespace hone {

// A file of src/report/page, which the build has put into the library. There is one of that name.
std::string_view page_file(std::string_view name);

}  // namespace hone
