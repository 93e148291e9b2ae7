# No colours unless asked for: not in a pipe, and not with NO_COLOR.
# Reads to the end: a writer whose reader left early fails.
colored() { grep $'\x1b\\[' >/dev/null; }
if "$HONE" help | colored; then exit 1; fi
"$HONE" help --color always | colored
if "$HONE" rnu 2>&1 | colored; then exit 1; fi

# On a terminal.
command -v script >/dev/null || { echo "skipped: there is no command script"; exit 77; }
export TERM=xterm
script -qec "$HONE help" /dev/null | colored
if script -qec "$HONE help --color never" /dev/null | colored; then exit 1; fi
if NO_COLOR=1 script -qec "$HONE help" /dev/null | colored; then exit 1; fi
if TERM=dumb script -qec "$HONE help" /dev/null | colored; then exit 1; fi
