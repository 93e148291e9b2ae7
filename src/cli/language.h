#pragma once

#include "language/generation.h"

// Parts that commands share which run language models.

namespace hone::cli {

class Arguments;
class Console;

// A file, or the standard input ("-").
Result<std::string> language_text_at(const std::string& path);
Result<SamplingOptions> sampling_options(const Arguments& arguments);
// --context, or room for this number of tokens, as far as the model has it.
int64_t context_for(int64_t tokens, const DecoderConfig& config, const Arguments& arguments);
// Refused: more memory than --memory-limit, with the context that fits.
Result<std::unique_ptr<LanguageModel>> load_language_model(LanguageSource read, int64_t context,
                                                           const Arguments& arguments,
                                                           Console& console);
// Where the time of a step goes, kernel by kernel, with the layer of each (start_profile()).
Status print_step_profile(const LanguageModel& model, Console& console);
// Lines about speed and memory.
void note_generation(const Generation& made, const LanguageModel& model, Console& console);

}  // namespace hone::cli
