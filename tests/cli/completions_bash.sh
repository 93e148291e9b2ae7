# The bash script completes commands, options, words and zoo models.
"$HONE" completions bash >hone.bash
source hone.bash
complete_line() { # complete_line WORDS...: the last one is being typed
  COMP_WORDS=(hone "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _hone 2>/dev/null
  echo "${COMPREPLY[*]}"
}
[[ $(complete_line "ins") == inspect ]]
[[ $(complete_line zoo "") == "list export digits" ]]
[[ $(complete_line zoo export "resnet5") == resnet50 ]]
[[ $(complete_line zoo export resnet50 "--im") == --image ]]
[[ $(complete_line run --numerics "w") == wide ]]
[[ $(complete_line run zoo : "vgg1") == "vgg16 vgg19" ]]
[[ $(complete_line opt --pass "dc") == dce ]]
[[ $(complete_line assign --search "gr") == greedy ]]
[[ $(complete_line run "--at") == --atol ]]
touch model.hone
[[ $(complete_line run "mod") == model.hone ]]
