func.func @main(%a: tensor<4x2xf32>, %b: tensor<3x2x1xf32>, %s: tensor<3xi32>, %n: tensor<?xf16>) -> (tensor<4x1xf32>, tensor<?x2xi8>) {
  %0 = "chlo.ragged_dot"(%a, %b, %s) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<4x2xf32>, tensor<3x2x1xf32>, tensor<3xi32>) -> tensor<4x1xf32>
  %1 = chlo.bessel_i1e %0 : tensor<4x1xf32> -> tensor<4x1xf32>
  %2 = interpreter.probe %1, probe_id = "p" : tensor<4x1xf32>
  %3 = stablehlo.bitcast_convert %n : (tensor<?xf16>) -> tensor<?x2xi8>
  return %2, %3 : tensor<4x1xf32>, tensor<?x2xi8>
}
