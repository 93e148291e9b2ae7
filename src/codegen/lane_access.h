#pragma once

namespace llvm {
class Function;
class TargetTransformInfo;
}  // namespace llvm

namespace hone::code {

// Rewrites masked accesses of vectors that the machine has no instruction for. LLVM 19 would make a
// block of each lane, and then takes minutes for a kernel with some thousand lanes. Here they stay
// in their block: a lane that its mask shuts accesses a slot on the stack instead.
void rewrite_masked_accesses(llvm::Function& function, const llvm::TargetTransformInfo& machine);

}  // namespace hone::code
