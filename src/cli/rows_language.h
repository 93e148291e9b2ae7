#pragma once

#include "cli/commands.h"
#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands that run
// language models.

namespace hone::cli::rows {

inline constexpr Positional kEncoder[] = {
    {.name = "MODEL",
     .take = Take::file,
     .doc = "a model of the family of BERT: a GGUF file, or a folder of Hugging Face"}};
inline constexpr Positional kLanguageModel[] = {
    {.name = "MODEL",
     .take = Take::file,
     .doc = "a language model: a GGUF file, or a folder of Hugging Face"}};

inline constexpr Option kContextOption = {
    .name = "context",
    .take = Take::integer,
    .value = "N",
    .doc =
        "tokens that the caches have room for (default: as many as are needed, at most those of "
        "the model)",
    .low = 1,
    .high = int64_t{1} << 24};

inline constexpr Option kPromptOptions[] = {
    {.name = "prompt",
     .letter = 'p',
     .take = Take::text,
     .value = "TEXT",
     .doc = "the text of the prompt"},
    {.name = "prompt-file",
     .take = Take::file,
     .value = "FILE",
     .doc = "the same from a file; - is the standard input"},
    {.name = "control",
     .doc = "control tokens that are spelled out in the prompt are tokens, not text"},
    {.name = "chat",
     .doc = "the prompt is what a user says: the chat template of the model is put around it"},
    {.name = "system",
     .take = Take::text,
     .value = "TEXT",
     .doc = "a message of the system before the prompt, with --chat"}};

inline constexpr Option kGenerateEnd[] = {
    {.name = "drop-start",
     .doc = "a prompt that is too long for the context loses tokens behind its first one; else it "
            "is refused"},
    {.name = "log-probabilities",
     .take = Take::output,
     .value = "FILE",
     .doc = "write a line for each token that was made: its number, the logarithm of its "
            "probability, its text"},
    {.name = "profile",
     .doc = "measure the steps of one token, and print the layers that take longest"},
    {.name = "prompts",
     .take = Take::file,
     .value = "FILE",
     .doc = "a prompt in each line; up to 8 texts share each pass over the weights. The texts come "
            "at the end, a line for each, escaped; - is the standard input"},
    {.name = "apart",
     .doc = "make the tokens of the texts of --prompts one after another: each text has the bits "
            "that it has alone"},
    {.name = "lookup",
     .doc = "guess what comes from what followed the last tokens before; the text stays the same"},
    {.name = "draft",
     .take = Take::file,
     .value = "MODEL",
     .doc = "guess what comes by a smaller model of the same vocabulary; the text stays the same"}};

inline constexpr Option kGenerateOwn[] = {
    {.name = "max-tokens",
     .letter = 'n',
     .take = Take::integer,
     .value = "N",
     .doc = "tokens that are made, at most",
     .fallback = "128",
     .low = 1,
     .high = int64_t{1} << 24},
    {.name = "stop",
     .take = Take::text,
     .value = "TEXT",
     .doc = "a text that ends it, and is not written",
     .repeats = true},
    {.name = "temperature",
     .take = Take::real,
     .value = "T",
     .doc = "how freely tokens are drawn; 0: the best one is taken",
     .fallback = "0"},
    {.name = "top-k",
     .take = Take::integer,
     .value = "K",
     .doc = "draw among the K best tokens; 0: among all",
     .fallback = "40"},
    {.name = "top-p",
     .take = Take::real,
     .value = "P",
     .doc = "and among the fewest of them whose probabilities sum to P",
     .fallback = "0.95"},
    {.name = "min-p",
     .take = Take::real,
     .value = "P",
     .doc = "and among those with at least this part of the best one's probability",
     .fallback = "0.05"},
    {.name = "repeat-penalty",
     .take = Take::real,
     .value = "P",
     .doc = "divide the positive logits of the last 64 tokens by P, and multiply negative ones",
     .fallback = "1"},
    seed_option("seed of what is drawn"),
    kContextOption};
inline constexpr Option kCacheType[] = {
    {.name = "cache-type",
     .take = Take::word,
     .value = "TYPE",
     .doc =
         "how the keys and values of tokens are kept: as they are, or rounded to f16, or to bytes "
         "with a scale for each head of each token",
     .fallback = "f32",
     .words = "f32|f16|q8"}};
inline constexpr Option kLanguageMemory[] = {
    kMemoryLimit,
    {.name = "to",
     .take = Take::word,
     .value = "LEVEL",
     .doc = "round the matrices to 8 or 4 bits while they are read, with a scale for each 32 "
            "numbers; those that have few bits already stay",
     .words = "w8|w4"}};
inline constexpr Option kLanguageNative[] = {kTargetOption,  kIsaOption,         kPricesOption,
                                             kCostOption,    kThreadsOption,     kPlanSeedOption,
                                             kWithoutOption, kNativeCacheOption, kFlushOption};
inline constexpr Option kLanguageDevice[] = {kDeviceOption};
inline constexpr auto kGenerate = joined(kPromptOptions, kGenerateOwn, kGenerateEnd, kCacheType,
                                         kLanguageMemory, kLanguageNative, kLanguageDevice);
inline constexpr Example kGenerateExamples[] = {
    {"hone generate model.gguf -p Once --max-tokens 40", "the text that the model goes on with"},
    {"hone generate model.gguf --prompt-file words.txt --temperature 0.8 --seed 7",
     "another one, drawn"}};

inline constexpr Option kChatOwn[] = {{.name = "system",
                                       .take = Take::text,
                                       .value = "TEXT",
                                       .doc = "a message of the system before the conversation"}};
inline constexpr auto kChat =
    joined(kChatOwn, kGenerateOwn, kCacheType, kLanguageMemory, kLanguageNative);
inline constexpr Example kChatExamples[] = {
    {"hone chat model.gguf --max-tokens 40", "a conversation, line by line"}};

inline constexpr Example kTokensExamples[] = {
    {"hone tokens model.gguf -p Once", "the number of each token, and its text"}};

inline constexpr Option kEvaluateOwn[] = {
    {.name = "text",
     .take = Take::file,
     .value = "FILE",
     .doc = "the text; - is the standard input"},
    {.name = "window",
     .take = Take::integer,
     .value = "N",
     .doc = "tokens of a window; the second half of each is scored",
     .fallback = "512",
     .low = 4,
     .high = int64_t{1} << 24}};
inline constexpr auto kEvaluate =
    joined(kEvaluateOwn, kCacheType, kLanguageMemory, kLanguageNative);
inline constexpr Example kEvaluateExamples[] = {
    {"hone evaluate model.gguf --text words.txt --window 16", "the perplexity of a text"}};

inline constexpr Option kEmbedOwn[] = {
    {.name = "prompt", .letter = 'p', .take = Take::text, .value = "TEXT", .doc = "the text"},
    {.name = "prompt-file",
     .take = Take::file,
     .value = "FILE",
     .doc = "the same from a file; - is the standard input"},
    {.name = "prompts", .take = Take::file, .value = "FILE", .doc = "a text in each line"},
    {.name = "output",
     .letter = 'o',
     .take = Take::output,
     .value = "FILE.npy",
     .doc = "write the vectors as an array, a row for each text, instead of lines of numbers"},
    {.name = "pooling",
     .take = Take::word,
     .value = "HOW",
     .doc = "which vector stands for a text: the mean of all, or that of the first or last token "
            "(default: as the model says, else mean)",
     .words = "mean|cls|last"},
    {.name = "raw",
     .doc = "leave the length of the vectors as it is; else it is 1 if the model "
            "says nothing else"},
    {.name = "drop-end",
     .doc = "a text that is too long for the model loses its end; else it is refused"}};
inline constexpr auto kEmbed = joined(kEmbedOwn, kLanguageMemory, kLanguageNative);
inline constexpr Example kEmbedExamples[] = {
    {"hone embed encoder.gguf -p Once", "the numbers of a text"},
    {"hone embed encoder.gguf --prompts words.txt -o vectors.npy",
     "a row of numbers for each line"}};

inline constexpr Command kLanguageCommands[] = {
    {.name = "generate",
     .summary = "Continue a text by a language model",
     .text = "Reads the prompt, then makes one token after another. The text goes to the standard "
             "output while it comes; speed and memory follow on the standard error. Ctrl-C ends it "
             "with the text so far. docs/language_models.md says which files it takes.",
     .positionals = kLanguageModel,
     .options = kGenerate,
     .examples = kGenerateExamples,
     .run = &cmd_generate},
    {.name = "chat",
     .summary = "Talk with a language model",
     .text = "Reads a line, and answers it. The chat template of the model says how it reads a "
             "conversation. Ctrl-C ends an answer with the text so far. /exit, the end of the "
             "input, or Ctrl-C while no answer comes ends the conversation. /new begins another "
             "one. Messages that no longer fit in the context are left out, the oldest first.",
     .positionals = kLanguageModel,
     .options = kChat,
     .examples = kChatExamples,
     .run = &cmd_chat},
    {.name = "tokens",
     .summary = "Show the tokens of a text, as a language model reads it",
     .text = "Prints a line for each token: its number and the text that it stands for, escaped.",
     .positionals = kLanguageModel,
     .options = kPromptOptions,
     .examples = kTokensExamples,
     .run = &cmd_tokens},
    {.name = "evaluate",
     .summary = "Tell how well a language model foresees a text",
     .text = "Cuts the text into windows, scores the second half of each, and prints the "
             "perplexity: e to the mean negative logarithm of the probabilities. Lower is better.",
     .positionals = kLanguageModel,
     .options = kEvaluate,
     .examples = kEvaluateExamples,
     .run = &cmd_evaluate},
    {.name = "embed",
     .summary = "Turn texts into vectors by a language model",
     .text =
         "Prints a line of numbers for each text. Texts that mean alike have vectors that point "
         "alike. docs/language_models.md says which models it takes.",
     .positionals = kEncoder,
     .options = kEmbed,
     .examples = kEmbedExamples,
     .run = &cmd_embed},
};

}  // namespace hone::cli::rows
