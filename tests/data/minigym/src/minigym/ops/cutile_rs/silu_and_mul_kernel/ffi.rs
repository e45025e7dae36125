// SPDX-License-Identifier: MIT
//
// C function of silu_and_mul. `x`: (rows, 2 * width), `y`: (rows, width), both contiguous in a row.

use core::ffi::c_void;
use cuda_async::device_buffer::DevicePointer;
use cuda_core::{Device, Stream};
use cutile::half::{bf16, f16};
use cutile::prelude::*;
use cutile::tile_kernel::{CompileOptions, TileKernel};

use crate::ffi_util::{TensorDesc, rc};
use silu_and_mul_module::silu_and_mul_kernel;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_silu_and_mul(
    x: *const TensorDesc,
    y: *const TensorDesc,
    tile: i32,
    num_cta_in_cga: i32,
    occupancy: i32,
    device_id: i32,
    raw_stream: u64,
) -> i32 {
    let (x, y) = crate::deref_descs!(x, y);
    let dtype = crate::resolve_dtype!(x);
    if x.ndim != 2 || y.ndim != 2 || x.dtype != y.dtype || tile < y.dim(1) {
        return rc::INVALID_ARGS;
    }
    crate::setup_device_stream!(device, stream, device_id, raw_stream);

    macro_rules! launch {
        ($E:ty) => {{
            let x_at: DevicePointer<$E> = unsafe { DevicePointer::from_cu_deviceptr(x.ptr) };
            let y_at: DevicePointer<$E> = unsafe { DevicePointer::from_cu_deviceptr(y.ptr) };
            let kernel = unsafe { silu_and_mul_kernel(x_at, y_at, y.dim(1), x.stride(0), y.stride(0)) };
            let outcome = kernel
                .generics(vec![dtype.to_string(), tile.to_string()])
                .grid((y.dim(0) as u32, 1, 1))
                .compile_options(crate::compile_options!(occupancy, num_cta_in_cga))
                .sync_on(&stream);
            match outcome {
                Ok(_) => rc::OK,
                Err(error) => {
                    eprintln!("cutile_silu_and_mul: {error:?}");
                    rc::LAUNCH_FAILED
                }
            }
        }};
    }

    crate::dispatch_by_dtype!(dtype, launch, f32, f16, bf16)
}
