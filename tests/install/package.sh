#!/usr/bin/env bash
# The Debian package: unpacked, its binary compiles and runs a model, and a C program uses its
# headers and libraries. $ROOT: the repository, $BUILD: the build tree.

source "$ROOT/tests/share.bash"
in_share 2 3 || { echo "another commit runs it, one of three ways to install"; exit 77; }
command -v dpkg-shlibdeps >/dev/null || { echo "there is no dpkg-dev"; exit 77; }
(cd "$BUILD" && cpack -G DEB -B "$OLDPWD/packages") >cpack.log 2>&1 || { cat cpack.log; exit 1; }
dpkg-deb --info packages/hone_*.deb >info
grep -q '^ Package: hone$' info
grep -q '^ Depends:.* libfmt' info
if grep -Eq '^ Depends:.*(llvm|mlir)' info; then cat info; exit 1; fi
dpkg-deb -x packages/hone_*.deb root
rm -r packages

usr=$PWD/root/usr
hone() { "$usr/bin/hone" "$@"; }
[[ $(hone --version) == $("$HONE" --version) ]]
hone compile zoo:mlp,size=tiny --cache none -o mlp.honec
hone run mlp.honec >table
grep -q '^logits' table

# Text pages are those of the binary.
hone man | cmp - "$usr/share/man/man1/hone.1"
hone completions bash | cmp - "$usr/share/bash-completion/completions/hone"
[[ -s $usr/share/zsh/vendor-completions/_hone ]]
[[ -s $usr/share/fish/vendor_completions.d/hone.fish ]]

if command -v cc >/dev/null; then
  cc "$ROOT/examples/run_model.c" -I"$usr/include/hone" -L"$usr/lib" -lhone_runtime -lfmt -lstdc++ \
    -lm -pthread -o run_model
  ./run_model mlp.honec | grep -q '^output logits f32 2 10: '
fi
[[ -e $usr/lib/cmake/hone/honeConfig.cmake ]]
