# The drawing has a box per op, frames for regions, and balanced braces.
"$HONE" inspect zoo:yolo_v3,size=tiny --dot yolo.dot >/dev/null 2>err
grep -q "wrote yolo.dot" err
grep -q '^digraph "yolo' yolo.dot
grep -q "subgraph cluster_.*{" yolo.dot
grep -q "= conv" yolo.dot
[[ $(grep -c '{$' yolo.dot) == $(grep -c '^ *}$' yolo.dot) ]]
"$HONE" inspect zoo:mlp --dot - | grep >/dev/null "^digraph"
