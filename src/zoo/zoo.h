#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/builder.h"

// Published architectures with seeded random weights. Building one costs milliseconds and little
// memory: a weight is generated when it is first read.

namespace hone {

enum class ZooSize : uint8_t {
  tiny,  // the same structure, thin and shallow: for tests
  full,  // as published
};

// Sizes that are left out are the model's own (ZooEntry::tiny, full). A size that the model does
// not have is an error.
struct ZooOptions {
  ZooSize size = ZooSize::full;
  uint64_t seed = 0;  // of the weights
  std::optional<int64_t> batch = {};
  std::optional<int64_t> length = {};   // of sequences
  std::optional<int64_t> image = {};    // height and width
  std::optional<int64_t> depth = {};    // layers; in networks of stages, blocks of every stage
  std::optional<int64_t> classes = {};  // that a classifier tells apart
  bool symbolic_batch = false;          // the batch is the symbol N
  bool symbolic_length = false;         // the length is the symbol T
  bool unroll = false;                  // recurrent cells are written out step by step
};

inline constexpr int64_t kAsPublished = -1;  // a depth: that of the paper's table

// The sizes that a model takes, with their defaults. 0: the model has no such size.
struct ZooSizes {
  int64_t batch = 1;
  int64_t length = 0;
  int64_t max_length = 1024;  // of a sequence
  int64_t image = 0;
  int64_t depth = 0;
  int64_t classes = 0;
};

struct ZooPublished {
  double parameters = 0;  // trained numbers; 0: no figure is known
  double macs = 0;        // multiply-adds of convolutions and matrix products at batch 1
  std::string_view source = "";
};

class Net;  // net.h

struct ZooEntry {
  std::string_view name;
  std::string_view summary;
  std::vector<Value> (*build)(Net&);
  ZooSizes full;
  ZooSizes tiny;
  ZooPublished published = {};
  bool unrolls = false;
};

std::span<const ZooEntry> zoo_entries();

Result<Graph> build_zoo_model(std::string_view name, const ZooOptions& options = {});

}  // namespace hone
