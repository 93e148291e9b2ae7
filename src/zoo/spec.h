#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zoo/zoo.h"

// Zoo models by one text: "resnet18,size=tiny,unroll".

namespace hone {

// A row per option of a zoo model: how it is written, and what it sets.
struct ZooOption {
  enum class Kind : uint8_t { flag, integer, word };

  std::string_view name;
  Kind kind;
  std::string_view doc;  // one sentence without a period
  // A flag gives 1. A word gives its place among `words`.
  void (*set)(ZooOptions&, int64_t);
  int64_t low = 0;
  int64_t high = INT64_MAX;
  std::string_view words = "";   // "tiny|full"
  std::string_view value = "N";  // what help calls the value
  std::string_view fallback = "";
};

inline constexpr ZooOption kZooOptions[] = {
    {.name = "seed",
     .kind = ZooOption::Kind::integer,
     .doc = "seed of the weights",
     .set = [](ZooOptions& o, int64_t value) { o.seed = static_cast<uint64_t>(value); },
     .fallback = "0"},
    {.name = "size",
     .kind = ZooOption::Kind::word,
     .doc = "full: as published; tiny: the same structure in small",
     .set = [](ZooOptions& o,
               int64_t value) { o.size = value == 0 ? ZooSize::tiny : ZooSize::full; },
     .words = "tiny|full",
     .value = "SIZE",
     .fallback = "full"},
    {.name = "batch",
     .kind = ZooOption::Kind::integer,
     .doc = "batch size",
     .set = [](ZooOptions& o, int64_t value) { o.batch = value; },
     .low = 1,
     .high = 65536},
    {.name = "length",
     .kind = ZooOption::Kind::integer,
     .doc = "length of sequences",
     .set = [](ZooOptions& o, int64_t value) { o.length = value; },
     .low = 1,
     .high = 65536},
    {.name = "image",
     .kind = ZooOption::Kind::integer,
     .doc = "height and width of images",
     .set = [](ZooOptions& o, int64_t value) { o.image = value; },
     .low = 1,
     .high = 16384},
    {.name = "depth",
     .kind = ZooOption::Kind::integer,
     .doc = "layers; in networks of stages, blocks of every stage",
     .set = [](ZooOptions& o, int64_t value) { o.depth = value; },
     .low = 1,
     .high = 4096},
    {.name = "classes",
     .kind = ZooOption::Kind::integer,
     .doc = "classes that a classifier tells apart: another head",
     .set = [](ZooOptions& o, int64_t value) { o.classes = value; },
     .low = 1,
     .high = 65536},
    {.name = "symbolic-batch",
     .kind = ZooOption::Kind::flag,
     .doc = "leave the batch size open, as the symbol N",
     .set = [](ZooOptions& o, int64_t) { o.symbolic_batch = true; }},
    {.name = "symbolic-length",
     .kind = ZooOption::Kind::flag,
     .doc = "leave the length of sequences open, as the symbol T",
     .set = [](ZooOptions& o, int64_t) { o.symbolic_length = true; }},
    {.name = "unroll",
     .kind = ZooOption::Kind::flag,
     .doc = "write recurrent cells out, step by step",
     .set = [](ZooOptions& o, int64_t) { o.unroll = true; }},
};

// Sets the option to what a user wrote; `shown` is how messages call it. A flag has no text.
Status set_option(ZooOptions& options, const ZooOption& option, std::string_view shown,
                  std::string_view text);

// An unknown name or option is an error that lists what there is.
Result<Graph> build_zoo_spec(std::string_view spec);
// The same error, without building the model.
Status check_zoo_spec(std::string_view spec);

}  // namespace hone
