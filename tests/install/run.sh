#!/usr/bin/env bash
# Installs hone into a scratch folder and builds a user's project against it.
# $ROOT: the repository, $BUILD: the build tree to install from, $CXX: the compiler.

source "$ROOT/tests/share.bash"
in_share 1 3 || { echo "another commit runs it, one of three ways to install"; exit 77; }
cmake --install "$BUILD" --prefix "$PWD/prefix" >install.log
cmake -S "$ROOT/tests/install" -B consumer -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$PWD/prefix" >configure.log
cmake --build consumer
./consumer/consumer
printf 'graph @negated(%%x: f32[8]) {\n  %%y = neg %%x\n  return %%y\n}\n' >negated.hone
./prefix/bin/hone compile negated.hone --cache none --emit object -o negated
./consumer/runner negated/kernel0.o
./prefix/bin/hone compile negated.hone --cache none -o negated.honec
./consumer/run_model negated.honec | grep -q '^output y f32 8: -0 '
./consumer/run_model_cc negated.honec | grep -qx 'f32\[8\]: -0 ...'
./consumer/compile_model negated.hone | grep -qx 'f32\[8\]: -0 ...'
./prefix/bin/hone --version
