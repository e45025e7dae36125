// SPDX-License-Identifier: MIT
//! What every operator's ffi.rs needs: the tensor record, dtype and return codes, and the macros
//! that turn a C call into a launch.

use core::mem::ManuallyDrop;
use cutile::prelude::*;

/// Most dimensions that a [`TensorDesc`] can carry.
pub const MAX_DIMS: usize = 5;

/// A tensor owned by the caller. Same layout as `TensorDesc` in backend/cutile_rs/utils.py.
/// Strides count elements; entries at and after `ndim` mean nothing.
#[repr(C)]
pub struct TensorDesc {
    pub ptr: u64,
    pub ndim: i32,
    pub shape: [i64; MAX_DIMS],
    pub strides: [i64; MAX_DIMS],
    pub dtype: i32,
}

impl TensorDesc {
    /// Extent of one dimension.
    pub fn dim(&self, axis: usize) -> i32 {
        self.shape[axis] as i32
    }

    /// Stride of one dimension, elements.
    pub fn stride(&self, axis: usize) -> i32 {
        self.strides[axis] as i32
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.extents().iter().map(|&extent| extent as usize).product()
    }

    /// Bytes that the elements take.
    pub fn nbytes(&self) -> usize {
        self.numel() * dtype_elem_size(self.dtype)
    }

    fn extents(&self) -> Vec<i32> {
        self.shape[..self.ndim as usize].iter().map(|&n| n as i32).collect()
    }

    fn steps(&self) -> Vec<i32> {
        self.strides[..self.ndim as usize].iter().map(|&n| n as i32).collect()
    }
}

/// Names of the dtype codes, in the order of the codes, with the bytes an element takes.
const DTYPES: [(&str, usize); 8] = [
    ("f32", 4),
    ("f16", 2),
    ("bf16", 2),
    ("i32", 4),
    ("i64", 8),
    ("f8e5m2", 1),
    ("f4e2m1fnx2", 1),
    ("f8e4m3fn", 1),
];

fn dtype_entry(code: i32) -> Option<&'static (&'static str, usize)> {
    usize::try_from(code).ok().and_then(|index| DTYPES.get(index))
}

/// Name of a dtype code as `.generics(...)` wants it.
pub fn dtype_str(code: i32) -> Option<&'static str> {
    dtype_entry(code).map(|entry| entry.0)
}

/// Bytes of an element, 0 for an unknown code.
pub fn dtype_elem_size(code: i32) -> usize {
    dtype_entry(code).map_or(0, |entry| entry.1)
}

/// What the C functions return. -1 is never returned: as an argument it leaves a choice to the compiler.
pub mod rc {
    pub const OK: i32 = 0;
    pub const UNSUPPORTED_DTYPE: i32 = -2;
    pub const LAUNCH_FAILED: i32 = -3;
    pub const DEVICE_INIT_FAILED: i32 = -4;
    pub const NULL_PTR: i32 = -5;
    pub const INVALID_ARGS: i32 = -6;
}

/// `(&TensorDesc, ..)` from `*const TensorDesc` arguments; the function returns NULL_PTR if one is null.
#[macro_export]
macro_rules! deref_descs {
    ($($desc:ident),+ $(,)?) => {{
        if $($desc.is_null())||+ {
            return $crate::ffi_util::rc::NULL_PTR;
        }
        unsafe { ($(&*$desc),+) }
    }};
}

/// Name of a descriptor's dtype; the function returns UNSUPPORTED_DTYPE if the code is unknown.
#[macro_export]
macro_rules! resolve_dtype {
    ($desc:expr) => {{
        let Some(name) = $crate::ffi_util::dtype_str($desc.dtype) else {
            return $crate::ffi_util::rc::UNSUPPORTED_DTYPE;
        };
        name
    }};
}

/// Bind `$device` and a borrowed `$stream`; the function returns DEVICE_INIT_FAILED if it cannot.
/// The caller has `cuda_core::{Device, Stream}` and `core::ffi::c_void` in scope.
#[macro_export]
macro_rules! setup_device_stream {
    ($device:ident, $stream:ident, $device_id:expr, $raw_stream:expr) => {
        let Ok(ordinal) = usize::try_from($device_id) else {
            eprintln!("minigym: there is no device {}", $device_id);
            return $crate::ffi_util::rc::DEVICE_INIT_FAILED;
        };
        let $device = match Device::new(ordinal) {
            Ok(device) => device,
            Err(error) => {
                eprintln!("minigym: device {ordinal}: {error:?}");
                return $crate::ffi_util::rc::DEVICE_INIT_FAILED;
            }
        };
        let $stream = unsafe { Stream::borrow_raw($raw_stream as *mut c_void, &$device) };
    };
}

/// Call the macro `$launch` with the Rust type that the dtype name `$name` stands for.
#[macro_export]
macro_rules! dispatch_by_dtype {
    ($name:expr, $launch:ident, $($kind:ident),+ $(,)?) => {{
        let wanted: &str = $name;
        $(if wanted == stringify!($kind) {
            $launch!($kind)
        } else)+ {
            $crate::ffi_util::rc::UNSUPPORTED_DTYPE
        }
    }};
}

/// `CompileOptions` from two integers; a value below 1 leaves the choice to the compiler.
#[macro_export]
macro_rules! compile_options {
    ($occupancy:expr, $num_cta_in_cga:expr) => {{
        let options = CompileOptions::default();
        let options = if $occupancy < 1 { options } else { options.occupancy($occupancy) };
        if $num_cta_in_cga < 1 { options } else { options.num_cta_in_cga($num_cta_in_cga) }
    }};
}

/// The caller's memory as a `Tensor` that is never freed from here.
///
/// # Safety
/// `desc` describes live device memory of element type `E` that outlasts the launch.
pub unsafe fn borrow_tensor<E: DType>(desc: &TensorDesc) -> ManuallyDrop<Tensor<E>> {
    let tensor = unsafe { Tensor::from_raw_parts(desc.ptr, desc.nbytes(), 0, desc.extents(), desc.steps()) };
    ManuallyDrop::new(tensor)
}
