# A model becomes a library that a C program calls; the program knows nothing of hone.
source "$ROOT/tests/cli/expect.bash"
command -v gcc >/dev/null || { echo "there is no gcc"; exit 77; }
model=zoo:mlp,size=tiny
strict=(-std=c99 -O1 -Wall -Wextra -Wpedantic -Werror)
says "wrote libmlp.so and mlp.h, for " compile "$model" --cache none --emit library -o libmlp.so
[[ ! -s out ]]
gcc "${strict[@]}" "$ROOT/examples/call_library.c" -I. -L. -lmlp -Wl,-rpath,"$PWD" -o shared
ldd shared libmlp.so >libraries
if grep -Eiq "hone|llvm|protobuf|stdc|fmt" libraries; then cat libraries; exit 1; fi
./shared >shared.out

# The same bits as hone run gives on one thread.
"$HONE" run "$model" --cache none --threads 1 --input x=2x16xf32=0 -o y.npy >table 2>/dev/null
[[ $(wc -l <shared.out) == 20 ]]
first=$(head -n 1 shared.out)
grep -q "  ${first:0:5}" table

# An archive, with code for all levels, into a program that brings nothing along.
mkdir all
says "; x86-64-v2" compile "$model" --cache none --isa all --emit library -o all/libmlp.a
gcc "${strict[@]}" "$ROOT/examples/call_library.c" -Iall -Lall -lmlp -o static
rm -r all libmlp.so
./static | cmp - shared.out
# No memory of a program is writable and executable.
readelf -lW static >out
never grep -q "RWE" out

# The header is C++, too.
if command -v g++ >/dev/null; then
  printf '#include "mlp.h"\nint main() { return mlp_supported(); }\n' >cpp.cc
  g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. cpp.cc
fi

# Options that do not go together, and missing things.
fails 2 "--emit library writes libNAME.so or libNAME.a" compile "$model" --emit library
fails 2 "--emit library writes" compile "$model" --emit library -o m.dll
fails 2 "a library computes on the thread that calls it" \
  compile "$model" --emit library -o libm.so --threads 2
fails 2 "does not go with --stop-after" \
  compile "$model" --emit library -o libm.so --stop-after image
fails 4 "N is open" compile "$model,symbolic-batch" --emit library -o libm.so
CC=no-such-cc fails 4 "'no-such-cc'" compile "$model" --emit library -o libm.so
[[ ! -e libm.so && ! -e m.h ]]
