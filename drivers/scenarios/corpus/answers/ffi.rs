// SPDX-License-Identifier: MIT

// C function of square: tensors cross as descriptors, the grid and the tile's side as numbers.

use core::ffi::c_void;
use cuda_async::device_buffer::DevicePointer;
use cuda_core::{Device, Stream};
use cutile::half::{bf16, f16};
use cutile::prelude::*;
use cutile::tile_kernel::{CompileOptions, TileKernel};

use crate::ffi_util::{TensorDesc, rc};
use square_module::square_kernel;

/// Alignment that the kernel may rely on, bytes.
fn promised_pointer(address: i64) -> i64 {
    if address % 16 == 0 { 16 } else { 1 }
}

/// What the kernel may rely on: 0 says that the extent is 1, else what divides it.
fn promised_extent(extent: i64) -> i64 {
    match extent {
        1 => 0,
        _ if extent % 16 == 0 => 16,
        _ => 1,
    }
}

/// What the kernel may rely on: 0 says that the stride is 1, else its divisor. Elements take two bytes.
fn promised_stride(stride: i64) -> i64 {
    match stride {
        1 => 0,
        _ if stride * 2 % 16 == 0 => 8,
        _ => 1,
    }
}

/// Launch `square_kernel`. The grid is in blocks; compile options <= 0 leave the choice to the compiler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_square(
    x: *const TensorDesc,
    y: *const TensorDesc,
    side: i32,
    grid_x: i32,
    grid_y: i32,
    grid_z: i32,
    num_cta_in_cga: i32,
    occupancy: i32,
    device_id: i32,
    raw_stream: u64,
) -> i32 {
    let (x_d, y_d) = crate::deref_descs!(x, y);
    if grid_x <= 0 || grid_y <= 0 || grid_z <= 0 {
        return rc::INVALID_ARGS;
    }
    let dtype: &'static str = crate::resolve_dtype!(x_d);
    if y_d.dtype != x_d.dtype {
        return rc::UNSUPPORTED_DTYPE;
    }
    crate::setup_device_stream!(device, stream, device_id, raw_stream);

    macro_rules! with_e {
        ($E:ty) => {{
            let x_p: DevicePointer<$E> = unsafe { DevicePointer::from_cu_deviceptr(x_d.ptr) };
            let y_p: DevicePointer<$E> = unsafe { DevicePointer::from_cu_deviceptr(y_d.ptr) };
            // generics: <E, SIDE, X_ALIGN, X_DIM0, X_DIM1, X_STRIDE0, Y_ALIGN, Y_DIM0, Y_DIM1, Y_STRIDE0>
            let generics: Vec<String> = vec![
                dtype.to_string(),
                side.to_string(),
                promised_pointer(x_d.ptr as i64).to_string(),
                promised_extent(x_d.shape[0]).to_string(),
                promised_extent(x_d.shape[1]).to_string(),
                promised_stride(x_d.strides[0]).to_string(),
                promised_pointer(y_d.ptr as i64).to_string(),
                promised_extent(y_d.shape[0]).to_string(),
                promised_extent(y_d.shape[1]).to_string(),
                promised_stride(y_d.strides[0]).to_string(),
            ];
            let opts = crate::compile_options!(occupancy, num_cta_in_cga);
            let op = unsafe {
                square_kernel(
                    x_p,
                    x_d.dim(0),
                    x_d.dim(1),
                    x_d.stride(0),
                    y_p,
                    y_d.dim(0),
                    y_d.dim(1),
                    y_d.stride(0),
                )
            }
            .generics(generics)
            .grid((grid_x as u32, grid_y as u32, grid_z as u32))
            .compile_options(opts);
            match op.sync_on(&stream) {
                Ok(_) => rc::OK,
                Err(error) => {
                    eprintln!("cutile_square: launch failed: {error:?}");
                    rc::LAUNCH_FAILED
                }
            }
        }};
    }
    crate::dispatch_by_dtype!(dtype, with_e, f16, bf16)
}
