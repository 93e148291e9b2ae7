# C programs under the sanitizers: the example, and one that calls the interface with wrong
# arguments.
cc=${SANITIZER_CC:-clang-19}
command -v "$cc" >/dev/null || { echo "there is no $cc"; exit 77; }
printf 'int main(void) { return 0; }\n' >empty.c
"$cc" -fsanitize=address,undefined empty.c -o empty 2>/dev/null && ./empty ||
  { echo "$cc has no sanitizers"; exit 77; }
if grep -q __tsan_init "$BUILD/libhone_runtime.a"; then
  echo "the library has another sanitizer"
  exit 77
fi
build() { # build SOURCE PROGRAM
  "$cc" -std=c11 -g -O1 -Wall -Wextra -Werror -fsanitize=address,undefined \
    -fno-sanitize-recover=all -I"$ROOT/src/runtime" "$1" "$BUILD/libhone_runtime.a" -lfmt -lstdc++ \
    -lm -pthread -o "$2"
}
build "$ROOT/tests/install/misuse.c" misuse
build "$ROOT/examples/run_model.c" run_model

model=zoo:mlp,size=tiny
"$HONE" compile "$model" --cache none -o graph.honec 2>/dev/null
"$HONE" compile "$model,symbolic-batch" --cache none -o open.honec 2>/dev/null
./misuse graph.honec open.honec || { echo "misuse.c:$?"; exit 1; }
./run_model graph.honec | grep -q '^output logits f32 2 10: '
