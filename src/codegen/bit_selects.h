#pragma once

namespace llvm {
class Function;
}

namespace hone::code {

// LLVM 19 takes the wrong truth table for select(k, v, x) with AVX-512 if v has some bits of x by a
// constant mask and others from elsewhere (llvm/llvm-project#157929). copysign(y, x) is an example.
// This rewrites such a select of vectors: the bits that v has of x do not depend on k.
void split_bit_selects(llvm::Function& function);

}  // namespace hone::code
