entry @_relu_kernel_Kt2_A1f16_1t1_p16_A1f16_1t1_p16_I1024(%arg0: tile<ptr<f16>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<ptr<f16>>, %arg4: tile<i32>, %arg5: tile<i32>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %assume = assume div_by<16>, %arg0 : tile<ptr<f16>>
  %assume_0 = assume div_by<16>, %arg3 : tile<ptr<f16>>
  %cst_1_i64 = constant <i64: 1> : tile<1024xi64>
  %cst_1_i64_1 = constant <i64: 1> : tile<1024xi64>
  %assume_2 = assume bounded<0, ?>, %arg1 : tile<i32>
  %assume_3 = assume bounded<0, ?>, %arg4 : tile<i32>
  %cst_1024_i32 = constant <i32: 1024> : tile<i32>
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32>
  %1 = muli %blockId_x, %cst_1024_i32 : tile<i32>
  %2 = iota : tile<1024xi32>
  %reshape = reshape %1 : tile<i32> -> tile<1xi32>
  %bcast = broadcast %reshape : tile<1xi32> -> tile<1024xi32>
  %3 = addi %bcast, %2 : tile<1024xi32>
  %4 = exti %3 signed : tile<1024xi32> -> tile<1024xi64>
  %5 = exti %assume_2 signed : tile<i32> -> tile<i64>
  %reshape_4 = reshape %5 : tile<i64> -> tile<1xi64>
  %bcast_5 = broadcast %reshape_4 : tile<1xi64> -> tile<1024xi64>
  %6 = cmpi less_than %4, %bcast_5, unsigned : tile<1024xi64> -> tile<1024xi1>
  %7 = muli %4, %cst_1_i64 : tile<1024xi64>
  %reshape_6 = reshape %assume : tile<ptr<f16>> -> tile<1xptr<f16>>
  %bcast_7 = broadcast %reshape_6 : tile<1xptr<f16>> -> tile<1024xptr<f16>>
  %8 = offset %bcast_7, %7 : tile<1024xptr<f16>>, tile<1024xi64> -> tile<1024xptr<f16>>
  %cst_0_f16 = constant <f16: 0.000000e+00> : tile<f16>
  %reshape_8 = reshape %cst_0_f16 : tile<f16> -> tile<1xf16>
  %bcast_9 = broadcast %reshape_8 : tile<1xf16> -> tile<1024xf16>
  %result, %result_token = load_ptr_tko weak %8, %6, %bcast_9 token=%0 : tile<1024xptr<f16>>, tile<1024xi1>, tile<1024xf16> -> tile<1024xf16>, token
  %cst_0_f16_10 = constant <f16: 0.000000e+00> : tile<1024xf16>
  %9 = maxf %result, %cst_0_f16_10 : tile<1024xf16>
  %10 = exti %3 signed : tile<1024xi32> -> tile<1024xi64>
  %11 = exti %assume_3 signed : tile<i32> -> tile<i64>
  %reshape_11 = reshape %11 : tile<i64> -> tile<1xi64>
  %bcast_12 = broadcast %reshape_11 : tile<1xi64> -> tile<1024xi64>
  %12 = cmpi less_than %10, %bcast_12, unsigned : tile<1024xi64> -> tile<1024xi1>
  %13 = muli %10, %cst_1_i64_1 : tile<1024xi64>
  %reshape_13 = reshape %assume_0 : tile<ptr<f16>> -> tile<1xptr<f16>>
  %bcast_14 = broadcast %reshape_13 : tile<1xptr<f16>> -> tile<1024xptr<f16>>
  %14 = offset %bcast_14, %13 : tile<1024xptr<f16>>, tile<1024xi64> -> tile<1024xptr<f16>>
  %15 = store_ptr_tko weak %14, %9, %12 token=%0 : tile<1024xptr<f16>>, tile<1024xf16>, tile<1024xi1> -> token
  return
}
