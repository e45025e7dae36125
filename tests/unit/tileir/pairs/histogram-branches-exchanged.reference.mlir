entry @histogram(%arg0: tile<ptr<i32>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<ptr<i32>>, %arg4: tile<i32>, %arg5: tile<i32>, %arg6: tile<ptr<i32>>, %arg7: tile<i32>, %arg8: tile<i32>, %arg9: tile<i32>, %arg10: tile<i1>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %assume = assume div_by<16>, %arg0 : tile<ptr<i32>>
  %assume_0 = assume div_by<8>, %arg1 : tile<i32>
  %assume_1 = assume div_by<16>, %arg3 : tile<ptr<i32>>
  %assume_2 = assume div_by<8>, %arg4 : tile<i32>
  %assume_3 = assume div_by<16>, %arg6 : tile<ptr<i32>>
  %assume_4 = assume div_by<8>, %arg7 : tile<i32>
  %cst_1_i32 = constant <i32: 1> : tile<i32>
  %cst_1_i32_5 = constant <i32: 1> : tile<i32>
  %cst_1_i32_6 = constant <i32: 1> : tile<32xi32>
  %cst_1_i64 = constant <i64: 1> : tile<32xi64>
  %cst_1_i64_7 = constant <i64: 1> : tile<32xi64>
  %cst_0_i32 = constant <i32: 0> : tile<32xi32>
  %cst_3_i32 = constant <i32: 3> : tile<32xi32>
  %cst_1_i64_8 = constant <i64: 1> : tile<32xi64>
  %assume_assume = assume bounded<0, ?>, %assume_0 : tile<i32>
  %assume_assume_assume = assume div_by<8>, %assume_assume : tile<i32>
  %tview = make_tensor_view %assume, shape = [%assume_assume_assume], strides = [1] : tile<i32> -> tensor_view<?xi32, strides=[1]>
  %assume_assume_9 = assume bounded<0, ?>, %assume_2 : tile<i32>
  %assume_assume_10 = assume bounded<0, ?>, %assume_4 : tile<i32>
  %assume_assume_assume_11 = assume div_by<8>, %assume_assume_10 : tile<i32>
  %tview_12 = make_tensor_view %assume_3, shape = [%assume_assume_assume_11], strides = [1] : tile<i32> -> tensor_view<?xi32, strides=[1]>
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32>
  %pview = make_partition_view %tview : partition_view<tile=(32), tensor_view<?xi32, strides=[1]>>
  %tile, %result_token = load_view_tko weak %pview[%blockId_x] token = %0 : partition_view<tile=(32), tensor_view<?xi32, strides=[1]>>, tile<i32> -> tile<32xi32>, token
  %1 = join_tokens %0, %result_token : token
  %cst_8_i32 = constant <i32: 8> : tile<i32>
  %2 = cmpi greater_than %arg9, %cst_8_i32, signed : tile<i32> -> tile<i1>
  %3:2 = if %2 -> (token, token) {
    %26 = scan %tile dim=0 reverse=false identities=[0 : i32] : tile<32xi32> -> tile<32xi32> 
    (%arg11: tile<i32>, %arg12: tile<i32>) {
      %28 = addi %arg11, %arg12 : tile<i32>
      yield %28 : tile<i32>
    }
    %pview_30 = make_partition_view %tview_12 : partition_view<tile=(32), tensor_view<?xi32, strides=[1]>>
    %27 = store_view_tko weak %26, %pview_30[%blockId_x] token = %0 : tile<32xi32>, partition_view<tile=(32), tensor_view<?xi32, strides=[1]>>, tile<i32> -> token
    yield %27, %27 : token, token
  } else {
    %26 = addi %tile, %cst_1_i32_6 : tile<32xi32>
    %pview_30 = make_partition_view %tview_12 : partition_view<tile=(32), tensor_view<?xi32, strides=[1]>>
    %27 = store_view_tko weak %26, %pview_30[%blockId_x] token = %0 : tile<32xi32>, partition_view<tile=(32), tensor_view<?xi32, strides=[1]>>, tile<i32> -> token
    yield %27, %27 : token, token
  }
  %cst_0_i32_13 = constant <i32: 0> : tile<i32>
  %cst_2_i32 = constant <i32: 2> : tile<i32>
  %cst_1_i32_14 = constant <i32: 1> : tile<i32>
  %4 = loop iter_values(%arg11 = %cst_0_i32_13) : tile<i32> -> tile<i32> {
    %26 = cmpi greater_than_or_equal %arg11, %arg9, signed : tile<i32> -> tile<i1>
    if %26 {
      break %arg11 : tile<i32>
    } else {
    }
    %27 = muli %arg11, %cst_2_i32 : tile<i32>
    %28 = addi %27, %cst_1_i32_14 : tile<i32>
    continue %28 : tile<i32>
  }
  %5 = exti %tile signed : tile<32xi32> -> tile<32xi64>
  %6 = exti %assume_assume_9 signed : tile<i32> -> tile<i64>
  %reshape = reshape %6 : tile<i64> -> tile<1xi64>
  %bcast = broadcast %reshape : tile<1xi64> -> tile<32xi64>
  %7 = cmpi less_than %5, %bcast, unsigned : tile<32xi64> -> tile<32xi1>
  %8 = muli %5, %cst_1_i64 : tile<32xi64>
  %reshape_15 = reshape %assume_1 : tile<ptr<i32>> -> tile<1xptr<i32>>
  %bcast_16 = broadcast %reshape_15 : tile<1xptr<i32>> -> tile<32xptr<i32>>
  %9 = offset %bcast_16, %8 : tile<32xptr<i32>>, tile<32xi64> -> tile<32xptr<i32>>
  %reshape_17 = reshape %4 : tile<i32> -> tile<1xi32>
  %bcast_18 = broadcast %reshape_17 : tile<1xi32> -> tile<32xi32>
  %10 = join_tokens %0, %1, %3#0 : token
  %result, %result_token_19 = atomic_rmw_tko acq_rel device %9, add, %bcast_18, %7 token=%10 : tile<32xptr<i32>>, tile<32xi32>, tile<32xi1> -> tile<32xi32>, token
  %11 = iota : tile<32xi32>
  %reshape_20 = reshape %arg9 : tile<i32> -> tile<1xi32>
  %bcast_21 = broadcast %reshape_20 : tile<1xi32> -> tile<32xi32>
  %12 = divi %11, %bcast_21 signed rounding<negative_inf> : tile<32xi32>
  %13 = exti %12 signed : tile<32xi32> -> tile<32xi64>
  %14 = exti %assume_assume_assume_11 signed : tile<i32> -> tile<i64>
  %reshape_22 = reshape %14 : tile<i64> -> tile<1xi64>
  %bcast_23 = broadcast %reshape_22 : tile<1xi64> -> tile<32xi64>
  %15 = cmpi less_than %13, %bcast_23, unsigned : tile<32xi64> -> tile<32xi1>
  %16 = muli %13, %cst_1_i64_7 : tile<32xi64>
  %reshape_24 = reshape %assume_3 : tile<ptr<i32>> -> tile<1xptr<i32>>
  %bcast_25 = broadcast %reshape_24 : tile<1xptr<i32>> -> tile<32xptr<i32>>
  %17 = offset %bcast_25, %16 : tile<32xptr<i32>>, tile<32xi64> -> tile<32xptr<i32>>
  %18 = join_tokens %3#1, %result_token_19 : token
  %result_26, %result_token_27 = load_ptr_tko weak %17, %15, %cst_0_i32 token=%18 : tile<32xptr<i32>>, tile<32xi1>, tile<32xi32> -> tile<32xi32>, token
  %19 = join_tokens %3#0, %result_token_27 : token
  %20 = xori %result_26, %cst_3_i32 : tile<32xi32>
  %21 = exti %11 signed : tile<32xi32> -> tile<32xi64>
  %22 = muli %21, %cst_1_i64_8 : tile<32xi64>
  %reshape_28 = reshape %assume_3 : tile<ptr<i32>> -> tile<1xptr<i32>>
  %bcast_29 = broadcast %reshape_28 : tile<1xptr<i32>> -> tile<32xptr<i32>>
  %23 = offset %bcast_29, %22 : tile<32xptr<i32>>, tile<32xi64> -> tile<32xptr<i32>>
  %24 = join_tokens %19, %result_token_19 : token
  %25 = store_ptr_tko weak %23, %20 token=%24 : tile<32xptr<i32>>, tile<32xi32> -> token
  return
}
