sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x4xf32>, %n: tensor<i32>) -> tensor<8x4xf32> {
  %0:2 = sdy.manual_computation(%x, %n) in_shardings=[<@m, [{"a", ?}, {}]>, <@m, []>] out_shardings=[<@m, [{"a"}, {?}]>, <@m, []>] manual_axes={"a"} (%z: tensor<4x4xf32>, %k: tensor<i32>) {
    %1 = "stablehlo.collective_permute"(%z) {source_target_pairs = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = sdy.manual_computation(%1) in_shardings=[<@m, [{}, {"b"}]>] out_shardings=[<@m, [{}, {"b"}]>] manual_axes={"b"} (%y: tensor<4x2xf32>) {
      %3 = "stablehlo.all_gather"(%y) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>, use_global_device_ids} : (tensor<4x2xf32>) -> tensor<4x4xf32>
      %4 = stablehlo.slice %3 [0:4, 0:2] : (tensor<4x4xf32>) -> tensor<4x2xf32>
      sdy.return %4 : tensor<4x2xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %5:2 = stablehlo.while(%i = %k, %v = %2) : tensor<i32>, tensor<4x4xf32>
    cond {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %6 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.add %i, %one : tensor<i32>
      %8 = stablehlo.multiply %v, %v : tensor<4x4xf32>
      stablehlo.return %7, %8 : tensor<i32>, tensor<4x4xf32>
    }
    sdy.return %5#1, %k : tensor<4x4xf32>, tensor<i32>
  } : (tensor<8x4xf32>, tensor<i32>) -> (tensor<8x4xf32>, tensor<i32>)
  return %0#0 : tensor<8x4xf32>
}
