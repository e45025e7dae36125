// SPDX-License-Identifier: MIT
//
// y[row, c] = silu(x[row, c]) * x[row, width + c]: one block a row, columns past `width` masked.

#[cutile::module]
pub mod silu_and_mul_module {
    use cutile::core::*;

    /// The tile of `TILE` elements that begins at `base`, as pointers.
    fn spread<E: ElementType, const TILE: i32>(
        base: PointerTile<*mut E, { [] }>,
        columns: Tile<i32, { [TILE] }>,
    ) -> PointerTile<*mut E, { [TILE] }> {
        let one: PointerTile<*mut E, { [1] }> = base.reshape(const_shape![1]);
        let all: PointerTile<*mut E, { [TILE] }> = one.broadcast(const_shape![TILE]);
        all.offset_tile(columns)
    }

    /// The beginning of row `row` of a matrix.
    fn row_start<E: ElementType>(base: *mut E, row: i32, stride: i32) -> PointerTile<*mut E, { [] }> {
        let row_tile: Tile<i32, { [] }> = scalar_to_tile(row);
        let wide_row: Tile<i64, { [] }> = exti(row_tile);
        let stride_tile: Tile<i32, { [] }> = scalar_to_tile(stride);
        let wide_stride: Tile<i64, { [] }> = exti(stride_tile);
        let start: PointerTile<*mut E, { [] }> = pointer_to_tile(base);
        start.offset_tile(wide_row * wide_stride)
    }

    #[cutile::entry()]
    pub unsafe fn silu_and_mul_kernel<E: ElementType, const TILE: i32>(
        x: *mut E,
        y: *mut E,
        width: i32,
        x_stride: i32,
        y_stride: i32,
    ) {
        let row: i32 = get_tile_block_id().0;
        let columns: Tile<i32, { [TILE] }> = iota(const_shape![TILE]);
        let limit: Tile<i32, { [TILE] }> = broadcast_scalar(width, const_shape![TILE]);
        let inside: Tile<bool, { [TILE] }> = cmpi(columns, limit, predicate::LessThan);

        let gate_row: PointerTile<*mut E, { [] }> = row_start(x, row, x_stride);
        let gate_at: PointerTile<*mut E, { [TILE] }> = spread(gate_row, columns);
        let (gate, _gate_token): (Tile<E, { [TILE] }>, Token) = load_ptr_tko(
            gate_at,
            ordering::Weak,
            None::<scope::TileBlock>,
            Some(inside),
            None::<E>,
            None::<Token>,
            Latency::<0>,
        );
        let value_row: PointerTile<*mut E, { [] }> = gate_row.offset(width);
        let value_at: PointerTile<*mut E, { [TILE] }> = spread(value_row, columns);
        let (value, _value_token): (Tile<E, { [TILE] }>, Token) = load_ptr_tko(
            value_at,
            ordering::Weak,
            None::<scope::TileBlock>,
            Some(inside),
            None::<E>,
            None::<Token>,
            Latency::<0>,
        );

        let g: Tile<f32, { [TILE] }> = convert_tile(gate);
        let v: Tile<f32, { [TILE] }> = convert_tile(value);
        let one: Tile<f32, { [TILE] }> = constant(1.0f32, const_shape![TILE]);
        let denominator: Tile<f32, { [TILE] }> = one + exp(negf(g));
        let sigmoid: Tile<f32, { [TILE] }> = true_div(one, denominator);
        let result: Tile<E, { [TILE] }> = convert_tile(g * sigmoid * v);

        let y_row: PointerTile<*mut E, { [] }> = row_start(y, row, y_stride);
        let y_at: PointerTile<*mut E, { [TILE] }> = spread(y_row, columns);
        let _stored: Token = store_ptr_tko(
            y_at,
            result,
            ordering::Weak,
            None::<scope::TileBlock>,
            Some(inside),
            None::<Token>,
            Latency::<0>,
        );
    }
}
