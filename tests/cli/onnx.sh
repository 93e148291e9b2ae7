# ONNX files go where graph files go, and TensorProto files where .npy files go.
data=/usr/share/libonnx-testdata/data/node
[[ -d $data ]] || { echo "skipped: there is no $data (package libonnx-testdata)"; exit 77; }
model=$data/test_relu/model.onnx
set=$data/test_relu/test_data_set_0

"$HONE" inspect "$model" | grep -q "^inputs *x *f32\[3, 4, 5\]"
"$HONE" inspect - <"$model" | grep -q "^graph test_relu"
cp "$model" named_otherwise
"$HONE" inspect named_otherwise --format json | grep -q '"test_relu"'

"$HONE" run "$model" --input x=@"$set"/input_0.pb --expect "$set"/output_0.pb >out 2>err
grep -q "^ok y" out
code=0
"$HONE" run "$model" --input x=@"$set"/output_0.pb --expect "$set"/input_0.pb >out 2>err || code=$?
[[ $code == 1 ]] && grep -q "^BAD y" out

"$HONE" check "$model" >out 2>err
grep -Eq "^y .*fp32 +0( |$)" out
grep -Eq "^y .*native +0( |$)" out
"$HONE" check "$model" --input x=@"$set"/input_0.pb --expect "$set"/output_0.pb >out 2>err
[[ $(grep -c "^ok y" out) == 4 ]]
code=0
"$HONE" check "$model" --expect "$set"/input_0.pb >out 2>err || code=$?
[[ $code == 1 ]] && grep -q "error: native: 1 of 1 comparisons failed" err

"$HONE" convert "$model" -o relu.hone 2>err
grep -q "relu %x" relu.hone
"$HONE" convert zoo:mlp,size=tiny -o mlp.hone 2>err && [[ -s mlp.npz ]]
"$HONE" convert "$model" -o - | "$HONE" run - --input x=@"$set"/input_0.pb \
  --expect "$set"/output_0.pb 2>err | grep -q "^ok y"
code=0
"$HONE" convert "$model" -o relu.txt 2>err || code=$?
[[ $code == 2 ]] && grep -q "there is no format '.txt' for models" err

# Sizes: what the file leaves open may be said, by the name of the dim or by a whole shape.
open=$data/test_nonmaxsuppression_two_classes/model.onnx
code=0
"$HONE" inspect "$open" --dim nothing=3 2>err || code=$?
[[ $code == 2 ]] && grep -q "the file has no dim 'nothing'" err
code=0
"$HONE" inspect "$model" --shape x=3x4x6 2>err || code=$?
[[ $code == 2 ]] && grep -q "the shape given has 6 along axis 2, the file 5" err
"$HONE" inspect "$model" --shape x=3x4x5 | grep -q "f32\[3, 4, 5\]"

"$HONE" ops --onnx Relu | grep -q "^Relu  *[0-9]"
code=0
"$HONE" ops --onnx Rleu 2>err || code=$?
[[ $code == 2 ]] && grep -q "did you mean 'Relu'" err
