// SPDX-License-Identifier: MIT
//! All cutile-rs operators of minigym. Each has a module of its own, so that names do not meet.

#[path = "../../ffi_util.rs"]
mod ffi_util;

mod silu_and_mul {
    include!("../../silu_and_mul_kernel/kernel.rs");
    include!("../../silu_and_mul_kernel/ffi.rs");
}
