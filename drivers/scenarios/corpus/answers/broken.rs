// SPDX-License-Identifier: MIT

// x times itself: a loop that carries an accumulator, one array read through two partitions.

#[cutile::module]
pub mod square_module {
    use cutile::core::*;

    /// An extent or stride: 1 if `KNOWN` is 0, else not negative and divisible by `KNOWN`.
    ///
    /// # Safety
    /// It is.
    unsafe fn measured<const KNOWN: i32>(x: i32) -> i32 {
        if KNOWN == 0i32 {
            1i32
        } else {
            let x: i32 = unsafe { assume_bounds_lower::<_, 0>(x) };
            if KNOWN > 1i32 {
                unsafe { assume_div_by::<_, KNOWN>(x) }
            } else {
                x
            }
        }
    }

    /// `_square_kernel` of square.py: block (i, j) makes tile (i, j) of `y`.
    ///
    /// Written for launches with:
    ///   * `x.stride(1) == 1`
    ///   * `y.stride(1) == 1`
    ///
    /// # Safety
    /// The arrays have the extents and strides that are passed for them.
    #[cutile::entry(optimization_hints = (sm_90 = (max_divisibility = 1,),))]
    pub unsafe fn square_kernel<
        E: ElementType,
        const SIDE: i32,
        const X_ALIGN: i32,
        const X_DIM0: i32,
        const X_DIM1: i32,
        const X_STRIDE0: i32,
        const Y_ALIGN: i32,
        const Y_DIM0: i32,
        const Y_DIM1: i32,
        const Y_STRIDE0: i32,
    >(
        x: *mut E,
        x_dim0: i32,
        x_dim1: i32,
        x_stride0: i32,
        y: *mut E,
        y_dim0: i32,
        y_dim1: i32,
        y_stride0: i32,
    ) {
        let x: *mut E = unsafe { assume_div_by::<_, X_ALIGN>(x) };
        let x_dim0: i32 = unsafe { measured::<X_DIM0>(x_dim0) };
        let x_dim1: i32 = unsafe { measured::<X_DIM1>(x_dim1) };
        let x_stride0: i32 = unsafe { measured::<X_STRIDE0>(x_stride0) };
        let y: *mut E = unsafe { assume_div_by::<_, Y_ALIGN>(y) };
        let y_dim0: i32 = unsafe { measured::<Y_DIM0>(y_dim0) };
        let y_dim1: i32 = unsafe { measured::<Y_DIM1>(y_dim1) };
        let y_stride0: i32 = unsafe { measured::<Y_STRIDE0>(y_stride0) };
        let token: Token = new_token_unordered();
        let x_base: PointerTile<*mut E, { [] }> = pointer_to_tile(x);
        let x_shape: Shape<{ [-1, -1] }> = Shape::<{ [-1, -1] }> {
            dims: &[x_dim0, x_dim1],
        };
        let x_strides: Array<{ [-1, 1] }> = Array::<{ [-1, 1] }> { dims: &[x_stride0] };
        let x_view = unsafe { make_tensor_view(x_base, x_shape, x_strides, token) };
        let y_base: PointerTile<*mut E, { [] }> = pointer_to_tile(y);
        let y_shape: Shape<{ [-1, -1] }> = Shape::<{ [-1, -1] }> {
            dims: &[y_dim0, y_dim1],
        };
        let y_strides: Array<{ [-1, 1] }> = Array::<{ [-1, 1] }> { dims: &[y_stride0] };
        let y_view = unsafe { make_tensor_view(y_base, y_shape, y_strides, token) };
        let row_tiles: Partition<E, { [SIDE, SIDE] }> = x_view.partition(const_shape![SIDE, SIDE]);
        let column_tiles: Partition<E, { [SIDE, SIDE] }> =
            x_view.partition(const_shape![SIDE, SIDE]);
        let mut y_tiles: PartitionMut<E, { [SIDE, SIDE] }> =
            unsafe { y_view.partition_full_mut(const_shape![SIDE, SIDE]) };
        let i: i32 = get_tile_block_id().0;
        let j: i32 = get_tile_block_id().1;
        let mut total: Tile<f32, { [SIDE, SIDE] }> = constant(0.0f32, const_shape![SIDE, SIDE]);
        let steps: i32 = num_tiles(&row_tiles, 1i32);
        for k in 0i32..steps {
            let left: Tile<E, { [SIDE, SIDE] }> = load_view_tko(
                &row_tiles,
                [i, k],
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
            let right: Tile<E, { [SIDE, SIDE] }> = load_view_tko(
                &column_tiles,
                [k, j],
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
            total = matmul(left, right, total);
        }
        let result: Tile<E, { [SIDE, SIDE] }> = convert_tile(total);
        unsafe {
            store_view_tko_mut(
                &mut y_tiles,
                result,
                [i, j],
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
        }
    }
}
