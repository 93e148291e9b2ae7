#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

// Temporary files lie beside others and get their new content until it is whole. temporary_name()
// (base/file.h) names them. A process that is killed leaves its own behind; the next one that
// writes into the folder removes them.

namespace hone {

// Checks with an empty file beside it that a new content can take the place of the file. A
// file that is there and may not be written counts as one that cannot.
Status check_can_write(const std::filesystem::path& path);

// Removes one that is not going to be published.
void discard_file(const std::filesystem::path& temporary);
// Removes all of this process that are not published yet, for an end in the middle of the work.
void discard_all_files();

namespace detail {

// The ending that temporary_name() adds to a path: ".tmp-PID-PLACE-NUMBER". The place is that in
// which the process has its number: a container of a system, since it was started.
std::string temporary_suffix(int process);
// True if the name ends so, or goes on as libraries do that write into such a file, and the process
// was one of this place: its number. 0: otherwise.
int process_of_temporary(std::string_view name);

// Notes a file that is neither published nor discarded.
void note_temporary(const std::filesystem::path& temporary);
void forget_temporary(const std::filesystem::path& temporary);

// Removes what dead processes have left in the folder, once in the life of this process.
void sweep_folder(const std::filesystem::path& folder);
// The same at each call.
void sweep_folder_now(const std::filesystem::path& folder);

}  // namespace detail

}  // namespace hone
