#pragma once

#include <string>

#include "kernel/kernel_body.h"
#include "kernel/schedule.h"
#include "target/target.h"

namespace hone {

// What a kernel does, as its schedule carries it out.
struct KernelWork {
  // Each element computed once. Products of transformed numbers count in place of those of their
  // conv, and products of parts each.
  double operations = 0;
  // Operations a second that the fastest unit of one core which the kernel uses does at most: of
  // the type that it computes in. 0: the target does not say.
  double peak = 0;
};
KernelWork work_of(const KernelBody& body, const Schedule& schedule, const Target& target);

// What a kernel computes, for people: "conv 3x3, add, max". Of many ops the first ones, and how
// many more there are; what only moves numbers is left out beside others.
std::string computes_text(const KernelBody& body);

}  // namespace hone
