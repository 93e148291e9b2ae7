# Each allocation may be the one that fails: the command then ends by a limit, never by a signal.
# A library in front of the C library's lets allocation K fail, or K and all after it. A share of
# all K is tried; HONE_ALLOCATIONS=1 tries each of them.
step=${HONE_ALLOCATIONS:-500}

cat >failing.cc <<'END'
#include <cerrno>
#include <cstdio>
#include <cstdlib>
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static long count, first = -1, last = -1;
static bool is_read;
static bool fails() {
  if (!is_read) {
    is_read = true;
    if (const char* text = getenv("FIRST")) first = atol(text);
    if (const char* text = getenv("LAST")) last = atol(text);
  }
  const long index = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  if (index < first || index > last) return false;
  errno = ENOMEM;
  return true;
}
void* malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t all, size_t bytes) { return fails() ? nullptr : __libc_calloc(all, bytes); }
void* realloc(void* old, size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
void* aligned_alloc(size_t to, size_t bytes) {
  return fails() ? nullptr : __libc_memalign(to, bytes);
}
int posix_memalign(void** memory, size_t to, size_t bytes) {
  void* got = fails() ? nullptr : __libc_memalign(to, bytes);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}
[[gnu::destructor]] static void tell() {
  if (getenv("TELL") != nullptr) fprintf(stderr, "allocations: %ld\n", count);
}
}
END
"$CXX" -shared -fPIC -O1 failing.cc -o failing.so

cat >model.hone <<'END'
graph @model(%x: f32[64, 32], %w: f32[32, 16]) {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %z = max %y, %y
  return %z
}
END
allocations() { # allocations ARGS...: how many a command makes
  TELL=1 LD_PRELOAD=$PWD/failing.so "$HONE" "$@" 2>&1 >/dev/null | sed -n 's/^allocations: //p'
}
start=$(allocations help)
refused=0
fail_in() { # fail_in ARGS...
  local all index last code
  all=$(allocations "$@")
  ((all > start))
  for ((index = start; index < all; index += step)); do
    for last in "$index" 1000000000; do
      code=0
      (ulimit -c 0 && export FIRST=$index LAST=$last MALLOC_PERTURB_=165 &&
        LD_PRELOAD=$PWD/failing.so exec "$HONE" "$@") >out 2>err || code=$?
      [[ $code == 0 ]] && continue
      [[ $code == 5 ]] || { echo "hone $*: code $code at $index to $last"; cat out err; exit 1; }
      refused=$((refused + 1))
    done
  done
}
fail_in run model.hone --cache none --progress none
fail_in compile model.hone --cache none --progress none --emit asm
data=/usr/share/libonnx-testdata/data/node/test_relu
[[ -d $data ]] && fail_in conformance-case --mode plain --backend native --memory-limit 4096 \
  --cache none -- "$data"
((refused > 30))
