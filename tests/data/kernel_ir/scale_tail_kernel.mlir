entry @_scale_tail_kernel_Kt2_A1f16_1t1_p16_A1f16_1t1_p16_Sf32_I512(%arg0: tile<ptr<f16>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<ptr<f16>>, %arg4: tile<i32>, %arg5: tile<i32>, %arg6: tile<f32>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %assume = assume div_by<16>, %arg0 : tile<ptr<f16>>
  %assume_0 = assume div_by<16>, %arg3 : tile<ptr<f16>>
  %cst_1_i64 = constant <i64: 1> : tile<512xi64>
  %cst_1_i64_1 = constant <i64: 1> : tile<512xi64>
  %assume_2 = assume bounded<0, ?>, %arg1 : tile<i32>
  %assume_3 = assume bounded<0, ?>, %arg4 : tile<i32>
  %cst_512_i32 = constant <i32: 512> : tile<i32>
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32>
  %1 = muli %blockId_x, %cst_512_i32 : tile<i32>
  %2 = iota : tile<512xi32>
  %reshape = reshape %1 : tile<i32> -> tile<1xi32>
  %bcast = broadcast %reshape : tile<1xi32> -> tile<512xi32>
  %3 = addi %bcast, %2 : tile<512xi32>
  %4 = exti %3 signed : tile<512xi32> -> tile<512xi64>
  %5 = exti %assume_2 signed : tile<i32> -> tile<i64>
  %reshape_4 = reshape %5 : tile<i64> -> tile<1xi64>
  %bcast_5 = broadcast %reshape_4 : tile<1xi64> -> tile<512xi64>
  %6 = cmpi less_than %4, %bcast_5, unsigned : tile<512xi64> -> tile<512xi1>
  %7 = muli %4, %cst_1_i64 : tile<512xi64>
  %reshape_6 = reshape %assume : tile<ptr<f16>> -> tile<1xptr<f16>>
  %bcast_7 = broadcast %reshape_6 : tile<1xptr<f16>> -> tile<512xptr<f16>>
  %8 = offset %bcast_7, %7 : tile<512xptr<f16>>, tile<512xi64> -> tile<512xptr<f16>>
  %cst_0_f16 = constant <f16: 0.000000e+00> : tile<f16>
  %reshape_8 = reshape %cst_0_f16 : tile<f16> -> tile<1xf16>
  %bcast_9 = broadcast %reshape_8 : tile<1xf16> -> tile<512xf16>
  %result, %result_token = load_ptr_tko weak %8, %6, %bcast_9 token=%0 : tile<512xptr<f16>>, tile<512xi1>, tile<512xf16> -> tile<512xf16>, token
  %9 = ftof %result  : tile<512xf16> -> tile<512xf32>
  %reshape_10 = reshape %arg6 : tile<f32> -> tile<1xf32>
  %bcast_11 = broadcast %reshape_10 : tile<1xf32> -> tile<512xf32>
  %10 = mulf %9, %bcast_11  : tile<512xf32>
  %11 = ftof %10  : tile<512xf32> -> tile<512xf16>
  %12 = exti %3 signed : tile<512xi32> -> tile<512xi64>
  %13 = exti %assume_3 signed : tile<i32> -> tile<i64>
  %reshape_12 = reshape %13 : tile<i64> -> tile<1xi64>
  %bcast_13 = broadcast %reshape_12 : tile<1xi64> -> tile<512xi64>
  %14 = cmpi less_than %12, %bcast_13, unsigned : tile<512xi64> -> tile<512xi1>
  %15 = muli %12, %cst_1_i64_1 : tile<512xi64>
  %reshape_14 = reshape %assume_0 : tile<ptr<f16>> -> tile<1xptr<f16>>
  %bcast_15 = broadcast %reshape_14 : tile<1xptr<f16>> -> tile<512xptr<f16>>
  %16 = offset %bcast_15, %15 : tile<512xptr<f16>>, tile<512xi64> -> tile<512xptr<f16>>
  %17 = store_ptr_tko weak %16, %11, %14 token=%0 : tile<512xptr<f16>>, tile<512xf16>, tile<512xi1> -> token
  return
}
