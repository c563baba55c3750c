// SPDX-License-Identifier: GPL-2.0

//! Writeback after uncached writes: the entry points that mm/filemap.c and mm/dontcache.c call.
//!
//! Policies: [`kernel::dontcache::limiter`].

use core::ptr::NonNull;
use kernel::{
    bindings,
    dontcache::{
        folio,
        mapping::{
            self,
            Mapping, //
        }, //
    },
    error::from_result,
    prelude::*,
    str::CStr, //
};

/// Returns how many pages of a range that was just written have to be written back now.
///
/// Context: task, does not sleep.
///
/// # Safety
///
/// Only called by `filemap_dontcache_write()`, with the mapping of an open file.
#[export]
pub unsafe extern "C" fn dontcache_limit(
    mapping: *mut bindings::address_space,
    first: i64,
    last: i64,
    bytes: isize,
    lazy: bool,
    nowait: bool,
) -> c_long {
    // SAFETY: The file is open, so its mapping lives.
    unsafe { Mapping::from_raw(mapping) }.wrote(first, last, bytes, lazy, nowait) as c_long
}

/// Drops a folio whose writeback has ended, together with others if `drops` is not null.
///
/// Context: task, does not sleep.
///
/// # Safety
///
/// Only called by mm/dontcache.c, with a folio to which the callee gets a reference, that has been
/// tried `tries` times before, and with null or the `drops` of the worker that calls.
#[export]
pub unsafe extern "C" fn dontcache_drop(
    folio: *mut bindings::folio,
    drops: *mut c_void,
    tries: c_uint,
) {
    // SAFETY: As promised by the caller.
    unsafe { folio::drop_folio(NonNull::new_unchecked(folio), drops, tries) };
}

/// Puts the policy called `name` in force; `-EINVAL` and no change if there is none.
///
/// # Safety
///
/// `name` is a NUL-terminated string.
#[export]
pub unsafe extern "C" fn dontcache_set_policy(name: *const c_char) -> c_int {
    // SAFETY: As promised by the caller.
    from_result(|| mapping::set_policy(unsafe { CStr::from_char_ptr(name) }).map(|()| 0))
}

/// Copies the name of the policy in force, with its NUL, to `buf`; cut off after `size` bytes.
///
/// # Safety
///
/// `buf` is valid for writes of `size` bytes.
#[export]
pub unsafe extern "C" fn dontcache_get_policy(buf: *mut c_char, size: usize) {
    let name = mapping::policy().name().as_bytes();
    // SAFETY: As promised by the caller.
    let buf = unsafe { core::slice::from_raw_parts_mut(buf.cast::<u8>(), size) };

    for (to, from) in buf.iter_mut().zip(Iterator::chain(name.iter(), &[0])) {
        *to = *from;
    }
}
