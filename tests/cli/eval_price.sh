# hone eval price --plans measures the plans of each price here, tunes, and names what is slower.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
fails 2 "name data sets, or models with --plans" eval price
fails 2 "there is no model 'nothing'" eval price --tuned 0 --plans zoo:nothing
fails 2 "of trials on data sets" eval price --plans zoo:mlp,size=tiny --on some.set

# Prices of this machine by which trips cost much more, so that some plans differ.
"$HONE" train cost --budget 0.001 >out 2>err && exit 1
file=$(echo "$PWD"/prices/*.set)
"$HONE" target show >here.target
"$HONE" target prices here.target -o here.prices >out 2>err
sed 's/^  trip = [0-9.]*/  trip = 90/' here.prices >"${file%.set}.prices"
evaluate() {
  "$HONE" eval price --plans zoo:squeezenet,size=tiny --plans zoo:mlp,size=tiny --seconds 1 "$@"
}
evaluate --tuned 2 --json eval.json >out 2>err
contains "^times as fast as by the analytic price +learned +adapted +tuned$"
for model in zoo:squeezenet,size=tiny zoo:mlp,size=tiny "geometric mean"; do
  contains "^$model +(-|[0-9.]+) +[0-9]\.[0-9]+ +[0-9]\.[0-9]+$"
done
contains "surely slower by more than 2 %"
for field in adapted tuned too_slow_by; do grep -q "\"$field\"" eval.json; done
evaluate --tuned 0 >out 2>err
contains "^zoo:mlp,size=tiny +(-|[0-9.]+) +[0-9]\.[0-9]+ +-$"
