#include "target/probe_kernels.h"

#if defined(__x86_64__)
#endif

namespace hone {

#if defined(__x86_64__)

namespace {

// ---- Peaks -------------------------------------------------------------------------------------

// Assembly with named registers: a compiler may keep an array of vectors in memory, and then shows
// less than half of the peak. Twelve chains hide a latency of up to six cycles on two units.
// Operands are not zeros, with which units save power, and chosen so that sums stay finite and
// normal: registers 0 to 13 begin with copies of `bits`.
#define HONE_VECTORS                                                                       \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define HONE_CHAINS ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n"

#define HONE_LOOP(setup, body, finish, repetitions, bits) \
  asm volatile(setup "1:\n" body                          \
                     "dec %0\n"                           \
                     "jnz 1b\n" finish                    \
               : "+r"(repetitions)                        \
               : "r"(bits)                                \
               : "cc", HONE_VECTORS)

#define HONE_PEAK(id, R, bits, body)                                                             \
  void id(int64_t repetitions) {                                                                 \
    HONE_LOOP("vmovd %1, %%xmm12\nvpbroadcastd %%xmm12, %%" R                                    \
              "12\n.irp i,0,1,2,3,4,5,6,7,8,9,10,11,13\nvmovaps %%" R "12, %%" R "\\i\n.endr\n", \
              HONE_CHAINS body "\n.endr\n", "vzeroupper\n", repetitions, uint32_t{bits});        \
  }
#define HONE_PEAK_SSE(id, bits, body)                                             \
  void id(int64_t repetitions) {                                                  \
    HONE_LOOP(                                                                    \
        "movd %1, %%xmm12\npshufd $0, %%xmm12, %%xmm12\n"                         \
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,13\nmovaps %%xmm12, %%xmm\\i\n.endr\n", \
        body, "", repetitions, uint32_t{bits});                                   \
  }

constexpr uint32_t kOneF32 = 0x3f800000, kOneF64 = 0x3ff00000, kOneF16 = 0x3c003c00,
                   kOneBf16 = 0x3f803f80, kSmallI8 = 0x01020301;

HONE_PEAK(fma_f32_zmm, "zmm", kOneF32, "vfmadd231ps %%zmm12, %%zmm13, %%zmm\\i")
HONE_PEAK(fma_f64_zmm, "zmm", kOneF64, "vfmadd231pd %%zmm12, %%zmm13, %%zmm\\i")
HONE_PEAK(fma_f16_zmm, "zmm", kOneF16, "vfmadd231ph %%zmm12, %%zmm13, %%zmm\\i")
HONE_PEAK(dot_bf16_zmm, "zmm", kOneBf16, "vdpbf16ps %%zmm12, %%zmm13, %%zmm\\i")
HONE_PEAK(dot_i8_zmm, "zmm", kSmallI8, "vpdpbusd %%zmm12, %%zmm13, %%zmm\\i")
HONE_PEAK(fma_f32_ymm, "ymm", kOneF32, "vfmadd231ps %%ymm12, %%ymm13, %%ymm\\i")
HONE_PEAK(fma_f64_ymm, "ymm", kOneF64, "vfmadd231pd %%ymm12, %%ymm13, %%ymm\\i")

// Products of bytes without VNNI: pairs to 16 bits, pairs of those to 32, then the sum. One
// temporary is enough, since the processor renames it.
#define HONE_MADD(R)                      \
  "vpmaddubsw %%" R "12, %%" R "13, %%" R \
  "14\n"                                  \
  "vpmaddwd %%" R "12, %%" R "14, %%" R   \
  "14\n"                                  \
  "vpaddd %%" R "14, %%" R "\\i, %%" R "\\i"
HONE_PEAK(madd_i8_zmm, "zmm", kSmallI8, HONE_MADD("zmm"))
HONE_PEAK(madd_i8_ymm, "ymm", kSmallI8, HONE_MADD("ymm"))
HONE_PEAK_SSE(madd_i8_xmm, kSmallI8,
              HONE_CHAINS
              "movdqa %%xmm12, %%xmm14\n"
              "pmaddubsw %%xmm13, %%xmm14\n"
              "pmaddwd %%xmm12, %%xmm14\n"
              "paddd %%xmm14, %%xmm\\i\n.endr\n")

// As many multiplications as additions, which is what a product of matrices needs.
#define HONE_MUL_ADD(type)      \
  ".irp i,0,1,2,3,4,5\n"        \
  "mul" type                    \
  " %%xmm12, %%xmm\\i\n.endr\n" \
  ".irp i,6,7,8,9,10,11\n"      \
  "add" type " %%xmm12, %%xmm\\i\n.endr\n"
HONE_PEAK_SSE(mul_add_f32_xmm, kOneF32, HONE_MUL_ADD("ps"))
HONE_PEAK_SSE(mul_add_f64_xmm, kOneF64, HONE_MUL_ADD("pd"))

// Eight tiles of 16 rows of 64 bytes; six accumulate.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

#define HONE_TILE_PEAK(id, bits, instruction)            \
  void id(int64_t repetitions) {                         \
    const TileConfig config;                             \
    alignas(64) uint32_t tile[16 * 16];                  \
    for (uint32_t& word : tile) word = bits;             \
    asm volatile(                                        \
        "ldtilecfg %1\n"                                 \
        "tileloadd (%2, %3), %%tmm6\n"                   \
        "tileloadd (%2, %3), %%tmm7\n"                   \
        ".irp i,0,1,2,3,4,5\ntilezero %%tmm\\i\n.endr\n" \
        "1:\n"                                           \
        ".irp i,0,1,2,3,4,5\n" instruction               \
        " %%tmm7, %%tmm6, %%tmm\\i\n.endr\n"             \
        "dec %0\n"                                       \
        "jnz 1b\n"                                       \
        "tilerelease\n"                                  \
        : "+r"(repetitions)                              \
        : "m"(config), "r"(tile), "r"(int64_t{64})       \
        : "cc", "memory");                               \
  }
HONE_TILE_PEAK(tile_bf16, kOneBf16, "tdpbf16ps")
HONE_TILE_PEAK(tile_i8, kSmallI8, "tdpbusd")

// Operations of twelve instructions that multiply and add in each lane; lanes by their bytes.
constexpr double chains(double vector_bytes, double lane_bytes) {
  return 12 * 2 * vector_bytes / lane_bytes;
}
constexpr double tiles(double depth) { return 6.0 * 2 * 16 * 16 * depth; }

// ---- Reading -----------------------------------------------------------------------------------

#define HONE_READ(id, loads, finish)                  \
  void id(const std::byte* data, int64_t bytes) {     \
    asm volatile(                                     \
        "1:\n"                                        \
        ".irp o,0,64,128,192,256,320,384,448\n" loads \
        ".endr\n"                                     \
        "add $512, %0\n"                              \
        "sub $512, %1\n"                              \
        "jnz 1b\n" finish                             \
        : "+r"(data), "+r"(bytes)                     \
        :                                             \
        : "cc", "memory", "xmm0");                    \
  }
static_assert(kReadStep == 512);
HONE_READ(read_zmm, "vmovups \\o(%0), %%zmm0\n", "vzeroupper\n")
HONE_READ(read_ymm, "vmovups \\o(%0), %%ymm0\nvmovups 32+\\o(%0), %%ymm0\n", "vzeroupper\n")
HONE_READ(read_xmm,
          "movups \\o(%0), %%xmm0\nmovups 16+\\o(%0), %%xmm0\n"
          "movups 32+\\o(%0), %%xmm0\nmovups 48+\\o(%0), %%xmm0\n",
          "")

}  // namespace

std::vector<PeakKernel> peak_kernels(Isa isa, ExtensionSet extensions) {
  using enum Extension;
  if (isa == Isa::v2)
    return {{DType::f64, chains(16, 8) / 2, mul_add_f64_xmm},
            {DType::f32, chains(16, 4) / 2, mul_add_f32_xmm},
            {DType::i8, chains(16, 1), madd_i8_xmm}};
  if (isa == Isa::avx2)
    return {{DType::f64, chains(32, 8), fma_f64_ymm},
            {DType::f32, chains(32, 4), fma_f32_ymm},
            {DType::i8, chains(32, 1), madd_i8_ymm}};
  std::vector<PeakKernel> kernels = {{DType::f64, chains(64, 8), fma_f64_zmm},
                                     {DType::f32, chains(64, 4), fma_f32_zmm}};
  if (extensions.contains(avx512_fp16)) kernels.push_back({DType::f16, chains(64, 2), fma_f16_zmm});
  if (extensions.contains(amx_bf16))
    kernels.push_back({DType::bf16, tiles(32), tile_bf16});
  else if (extensions.contains(avx512_bf16))
    kernels.push_back({DType::bf16, chains(64, 2), dot_bf16_zmm});
  if (extensions.contains(amx_int8))
    kernels.push_back({DType::i8, tiles(64), tile_i8});
  else if (extensions.contains(avx512_vnni))
    kernels.push_back({DType::i8, chains(64, 1), dot_i8_zmm});
  else
    kernels.push_back({DType::i8, chains(64, 1), madd_i8_zmm});
  return kernels;
}

ReadKernel read_kernel(Isa isa) {
  switch (isa) {
    case Isa::v2: return read_xmm;
    case Isa::avx2: return read_ymm;
    case Isa::avx512: return read_zmm;
  }
  return read_xmm;
}

void pause_core() { asm volatile("pause"); }

#else

std::vector<PeakKernel> peak_kernels(Isa, ExtensionSet) { return {}; }
ReadKernel read_kernel(Isa) { return nullptr; }
void pause_core() {}

#endif

}  // namespace hone
