func.func @main(%x: tensor<2x5xf32>) -> tensor<2xi32> {
  %i = stablehlo.iota dim = 1 : tensor<2x5xi32>
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0:2 = stablehlo.reduce(%x init: %c), (%i init: %c) across dimensions = [1] : (tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
    %q = stablehlo.select %p, %j, %k : tensor<i1>, tensor<i32>
    %e = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.minimum %j, %k : tensor<i32>
    %r = stablehlo.select %e, %m, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %r : tensor<f32>, tensor<i32>
  }
  return %0#1 : tensor<2xi32>
}
