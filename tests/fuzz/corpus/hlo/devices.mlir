module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<4xi32>) -> (tensor<8xi32>, tensor<4xi32>) {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.subtract %a, %b : tensor<i32>
      stablehlo.return %c : tensor<i32>
    }) : (tensor<4xi32>) -> tensor<4xi32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<4xi32>) -> tensor<8xi32>
    %2 = "stablehlo.collective_broadcast"(%0) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<4xi32>) -> tensor<4xi32>
    %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.all_to_all"(%3) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xi32>) -> tensor<4xi32>
    %5 = stablehlo.replica_id : tensor<ui32>
    return %1, %4 : tensor<8xi32>, tensor<4xi32>
  }
}
