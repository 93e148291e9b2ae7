func.func @main(%h0: tensor<2xf32>, %w: tensor<3x2xf32>, %x0: tensor<4x3xf32>, %y0: tensor<4x2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %q:4 = stablehlo.while(%i = %zero, %h = %h0, %x = %x0, %y = %y0) : tensor<i32>, tensor<2xf32>, tensor<4x3xf32>, tensor<4x2xf32>
  cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %last = stablehlo.constant dense<3> : tensor<i32>
    %b = stablehlo.subtract %last, %i : tensor<i32>
    %r1 = stablehlo.dynamic_slice %x, %b, %zero, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %r = stablehlo.reshape %r1 : (tensor<1x3xf32>) -> tensor<3xf32>
    %d = stablehlo.dot_general %r, %w, contracting_dims = [0] x [0] : (tensor<3xf32>, tensor<3x2xf32>) -> tensor<2xf32>
    %h1 = stablehlo.add %h, %d : tensor<2xf32>
    %new = stablehlo.reshape %h1 : (tensor<2xf32>) -> tensor<1x2xf32>
    %y1 = stablehlo.dynamic_update_slice %y, %new, %i, %zero : (tensor<4x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %h1, %x, %y1 : tensor<i32>, tensor<2xf32>, tensor<4x3xf32>, tensor<4x2xf32>
  }
  return %q#1, %q#3 : tensor<2xf32>, tensor<4x2xf32>
}
