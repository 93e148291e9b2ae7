module @m {
  func.func public @main(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<i32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<2x3xf32>
     cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %t = call @twice(%s) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      stablehlo.return %j, %t : tensor<i32>, tensor<2x3xf32>
    }
    %y = stablehlo.reduce(%r#1 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %y, %r#0 : tensor<2xf32>, tensor<i32>
  }
  func.func private @twice(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.add"(%a, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
