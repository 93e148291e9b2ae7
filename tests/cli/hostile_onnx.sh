# Hostile ONNX files through the command line: the exit code, the file and the reason, in 2 s of CPU
# time and little memory. Files are written by hand; tests/hostile has a case for each known class.
ulimit -v $((4 << 20))  # in KB; what is mapped counts too

byte() { printf "\\x$(printf %02x "$1")"; }
varint() { # varint NUMBER
  local n=$1
  while ((n >= 128)); do
    byte $((n & 127 | 128))
    n=$((n >> 7))
  done
  byte "$n"
}
number() { # number FIELD VALUE
  varint $(($1 << 3))
  varint "$2"
}
bytes() { # bytes FIELD <CONTENT
  local part=part.$BASHPID
  cat >"$part"
  varint $(($1 << 3 | 2))
  varint "$(wc -c <"$part")"
  cat "$part"
  rm "$part"
}
text() { printf %s "$2" | bytes "$1"; } # text FIELD TEXT
node() {                                # node OP INPUT OUTPUT [FUNCTION_DOMAIN]
  { text 1 "$2" && text 2 "$3" && text 4 "$1" && text 7 "${4-}"; } | bytes 1
}
opset() { { text 1 "$1" && number 2 17; } | bytes "${2-8}"; }
tensor() { # tensor NAME DIMS... <FIELDS
  local name=$1 dim
  shift
  {
    for dim; do number 1 "$dim"; done
    number 2 1
    text 8 "$name"
    cat
  } | bytes 5
}
output() { text 1 "$1" | bytes 12; }
model() { # model NAME <GRAPH
  { number 1 8 && bytes 7 && opset ""; } >"$1.onnx"
}

refused() { # refused CODE WORDS FILE
  local code=0
  (ulimit -t 2 && exec "$HONE" inspect "$3") >out 2>err || code=$?
  [[ $code == "$1" && ! -s out ]] || { echo "$3: exit code $code, not $1"; cat err; return 1; }
  grep -qF -- "$2" err || { echo "$3: no '$2' in:"; cat err; return 1; }
  grep -qF -- "$3" err || { echo "$3 is not named in:"; cat err; return 1; }
}

{ node Relu y y && output y; } | model cycle
refused 3 "value 'y' is used before it is given" cycle.onnx

{ node Relu w y && output y && number 9 0 | tensor w 4294967296 4294967296; } | model overflow
refused 3 "" overflow.onnx

{ node Relu w y && output y && text 9 abcd | tensor w 1000; } | model short
refused 3 "raw_data holds 4 bytes, but f32[1000] needs 4000" short.onnx

entry() { { text 1 "$1" && text 2 "$2"; } | bytes 13; }
external() { # external LOCATION OFFSET
  {
    node Relu w y && output y
    { entry location "$1" && entry offset "$2" && number 14 1; } | tensor w 2
  } | model external
}
printf 12345678 >weights.bin
external weights.bin 0
"$HONE" inspect external.onnx >out
external weights.bin 1
refused 3 "needs 8 bytes at offset 1" external.onnx
for location in ../weights.bin a/../../weights.bin /etc/passwd; do
  external "$location" 0
  refused 3 "initializer 'w'" external.onnx
done
ln -s weights.bin link.bin
external link.bin 0
refused 3 "symbolic link" external.onnx
mkdir folder && cp weights.bin folder && ln -s folder parent
external parent/weights.bin 0
refused 3 "initializer 'w'" external.onnx
ln weights.bin hard.bin
external hard.bin 0
refused 3 "2 hard links" external.onnx

# A function that calls itself.
{
  cat cycle.onnx && opset own
  {
    text 1 f && text 4 a && text 5 b && opset own 9
    { text 1 a && text 2 b && text 4 f && text 7 own; } | bytes 7
    text 10 own
  } | bytes 25
} >function.onnx
refused 3 "function 'own.f' calls itself" function.onnx

head -c 100000 /dev/zero >zeros.onnx
refused 3 "" zeros.onnx
head -c $(($(wc -c <cycle.onnx) / 2)) cycle.onnx >half.onnx
refused 3 "" half.onnx
: >empty.onnx
refused 3 "" empty.onnx
