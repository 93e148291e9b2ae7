#pragma once

#include <string>

#include "kernel/kernel_body.h"
#include "kernel/schedule.h"
#include "target/target.h"

namespace hone {

// The work of a kernel, as its schedule carries it out.
struct KernelWork {
  // Each element computed once. Products of transformed numbers count in place of those of their
  // conv, and products of parts each.
  double operations = 0;
  // Operations a second that the fastest unit of one core which the kernel uses does at most: of
  // the type that it computes in. 0: the target does not say.
  double peak = 0;
};
KernelWork work_of(const KernelBody& body, const Schedule& schedule, const Target& target);

// The computation of a kernel, for people: "conv 3x3, add, max". If there are many ops, the first
// ones and the number of the others. Ops that only move numbers are left out beside others.
std::string computes_text(const KernelBody& body);

}  // namespace hone
