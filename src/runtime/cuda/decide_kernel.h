#pragma once

namespace hone {

// The kernel by which the GPU decides. It sets a condition of a graph: to whether a byte is not 0,
// or is 0, if `opposite` is 1. While `stop` is not 0, each condition becomes 0. Its parameters are
// words: the addresses of the byte and of `stop`, the condition, and `opposite`. The driver itself
// has the function that it calls.
inline constexpr char kDecideFunction[] = "decide";
inline constexpr char kDecidePtx[] = R"(.version 7.0
.target sm_80
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);

.visible .entry decide(
  .param .u64 byte, .param .u64 stop, .param .u64 condition, .param .u64 opposite)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;

  ld.param.u64 %rd1, [byte];
  ld.param.u64 %rd2, [stop];
  ld.param.u64 %rd3, [condition];
  ld.param.u64 %rd4, [opposite];
  ld.global.u8 %r1, [%rd1];
  ld.volatile.global.u32 %r2, [%rd2];
  cvt.u32.u64 %r3, %rd4;
  setp.ne.u32 %p1, %r1, 0;
  selp.u32 %r4, 1, 0, %p1;
  xor.b32 %r4, %r4, %r3;
  setp.ne.u32 %p2, %r2, 0;
  selp.u32 %r5, 0, %r4, %p2;
  {
    .param .b64 to;
    .param .b32 value;
    st.param.b64 [to], %rd3;
    st.param.b32 [value], %r5;
    call.uni cudaGraphSetConditional, (to, value);
  }
  ret;
}
)";

}  // namespace hone
