#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/front/shape_judge.h"

// Random ONNX files that compute shapes, from sizes and from data, in every position of a target,
// and what the judge says of them.

namespace hone::shape_files {

struct Run {
  enum class Verdict { legal, illegal, unclear };
  shape_judge::Arrays inputs;
  Verdict verdict = Verdict::legal;
  std::string why = "";         // it is not legal
  shape_judge::Arrays outputs;  // of a legal one
};

struct ShapeFile {
  onnx::ModelProto proto;
  std::vector<Run> runs;  // with different sizes and data; the first is seldom illegal
};
ShapeFile random_file(uint64_t seed);

enum class Outcome {
  right,    // what the judge says, or an error where the standard allows no result
  unclear,  // the judge says nothing
  refused,  // an error although the judge has a result
  wrong,    // another result, a result where there is none, or a fault of hone
};
struct Judged {
  Outcome outcome;
  std::string reason;
};
// Each run of the file by hone: by the reference or as native code.
std::vector<Judged> judged(const ShapeFile& file, bool is_native = false);

// How many runs came out how, and why.
struct Tally {
  int64_t right = 0, errors = 0, unclear = 0, refused = 0, wrong = 0;  // errors: of those right
  std::vector<std::string> reasons;                                    // of those wrong or refused

  void add(uint64_t seed, const ShapeFile& file, const std::vector<Judged>& judged);
  std::string to_string() const;
};

}  // namespace hone::shape_files
