# The op table, whole and one by one.
"$HONE" ops >all 2>/dev/null
grep -Eq "^  add\(lhs, rhs\)" all
"$HONE" ops reduce >one
grep -Eq "^  kind +sum, product, max, min, and, or +required" one
for op in $(sed -nE 's/^  ([a-z_0-9]+)\(.*/\1/p' all); do "$HONE" ops "$op" >/dev/null; done
