// SPDX-License-Identifier: GPL-2.0

//! Uncached I/O: the entry points that mm/filemap.c, mm/dontcache.c and filesystems call.
//!
//! Design: [`kernel::dontcache::writeback`] and [`kernel::dontcache::dropping`].

use core::ptr::NonNull;
#[cfg(CONFIG_DONTCACHE_PACED)]
use kernel::dontcache::writeback::{
    report,
    wb, //
};
use kernel::{
    bindings,
    dontcache::{
        dropping::{
            batch,
            retry, //
        },
        writeback::mapping::{
            self,
            Mapping, //
        }, //
    },
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    str::CStr, //
};

/// Follows an uncached write of `bytes` that ends at the position of `iocb`, see
/// [`Mapping::wrote`].
///
/// # Safety
///
/// Only called by `generic_write_sync()`, with a kiocb of its own.
#[export]
pub unsafe extern "C" fn dontcache_write(iocb: *mut bindings::kiocb, bytes: isize) {
    // SAFETY: It is valid, and nobody writes it meanwhile.
    let iocb = unsafe { &*iocb };
    let has = |flag: c_int| iocb.ki_flags & flag != 0;

    // This may be an interrupt, and mostly nothing of it is in the page cache. What fell back to
    // buffered I/O and is not written by its filesystem is left to the flusher.
    if has(bindings::IOCB_DIRECT as c_int) {
        return;
    }

    // SAFETY: The file is open, so its mapping lives.
    let mapping = unsafe { Mapping::from_raw((*iocb.ki_filp).f_mapping) };
    let first = iocb.ki_pos.wrapping_sub(bytes as i64);
    let last = iocb.ki_pos.wrapping_sub(1);
    let lazy = has(bindings::IOCB_DONTCACHE_LAZY);
    let nowait = has(bindings::IOCB_NOWAIT);

    mapping.wrote(first, last, bytes, lazy, nowait);
}

/// Whether an uncached write of `bytes` may begin, see [`Mapping::may_write`].
///
/// # Safety
///
/// Only called by `generic_write_checks_count()` and `blkdev_write_iter()`, with a kiocb of their
/// own. Not for `O_DSYNC`: who waits for its own pages is told of their errors.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_write_checks(iocb: *mut bindings::kiocb, bytes: i64) -> c_int {
    const OTHERS: c_int = bindings::IOCB_DIRECT as c_int | bindings::IOCB_DONTCACHE_LAZY;

    // SAFETY: As promised by the caller.
    let iocb = unsafe { &*iocb };

    if iocb.ki_flags & OTHERS != 0 {
        return 0;
    }

    // SAFETY: The file is open, so its mapping lives.
    let mapping = unsafe { Mapping::from_raw((*iocb.ki_filp).f_mapping) };
    let nowait = iocb.ki_flags & bindings::IOCB_NOWAIT != 0;

    from_result(|| mapping.may_write(bytes, nowait).map(|()| 0))
}

/// Adds what paces writers to a `bdi_writeback`.
///
/// # Safety
///
/// Only called by `wb_init()`.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_wb_init(
    wb: *mut bindings::bdi_writeback,
    gfp: bindings::gfp_t,
) -> c_int {
    // SAFETY: As promised by the caller.
    from_result(|| unsafe { wb::init(wb, gfp) }.map(|()| 0))
}

/// Takes it away.
///
/// # Safety
///
/// Only called by `wb_exit()`.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_wb_exit(wb: *mut bindings::bdi_writeback) {
    // SAFETY: As promised by the caller.
    unsafe { wb::exit(wb) };
}

/// Lets a mapping forget what is pending.
///
/// # Safety
///
/// Only called by `clear_inode()`.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_forget(mapping: *mut bindings::address_space) {
    // SAFETY: As promised by the caller.
    unsafe { kernel::dontcache::writeback::dirty::forget(mapping) };
}

/// The attributes of a bdi, see [`report::set_policy`] and [`report::set_most`].
///
/// # Safety
///
/// Only called for `/sys/class/bdi/*/dontcache_*`.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_policy_show(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: As promised by the caller.
    from_result(|| unsafe { report::show_policy(dev, page) })
}

/// See [`dontcache_policy_show`].
///
/// # Safety
///
/// As above; there are `len` bytes of `text`.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_policy_store(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    text: *const c_char,
    len: usize,
) -> isize {
    from_result(|| {
        // SAFETY: As promised by the caller.
        unsafe { report::set_policy(dev, core::slice::from_raw_parts(text.cast(), len))? };
        Ok(len as isize)
    })
}

/// See [`dontcache_policy_show`].
///
/// # Safety
///
/// As above.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_max_bytes_show(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: As promised by the caller.
    from_result(|| unsafe { report::show_most(dev, page) })
}

/// See [`dontcache_policy_show`].
///
/// # Safety
///
/// As above; `text` ends with a null.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_max_bytes_store(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    text: *const c_char,
    len: usize,
) -> isize {
    from_result(|| {
        // SAFETY: As promised by the caller.
        unsafe { report::set_most(dev, text)? };
        Ok(len as isize)
    })
}

/// Prints what is known of a `bdi_writeback`.
///
/// # Safety
///
/// Only called by `dontcache_show()`.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[export]
pub unsafe extern "C" fn dontcache_wb_show(
    file: *mut bindings::seq_file,
    wb: *mut bindings::bdi_writeback,
) {
    // SAFETY: As promised by the caller.
    unsafe { report::show(file, wb) };
}

/// Drops a folio whose writeback has ended, or that was read; see [`batch::end_writeback`].
///
/// # Safety
///
/// Only called by `folio_end_dropbehind()` and `filemap_end_dropbehind_read()`, with a folio to
/// which the caller has a reference.
#[export]
pub unsafe extern "C" fn dontcache_end_writeback(folio: *mut bindings::folio, again: bool) {
    // SAFETY: As promised by the caller.
    unsafe { batch::end_writeback(NonNull::new_unchecked(folio), again) };
}

/// Follows a folio that waits to be tried again to where it is now, see [`retry::moved`].
///
/// # Safety
///
/// Only called by `folio_migrate_flags()`, whose caller has a reference to each.
#[export]
pub unsafe extern "C" fn dontcache_moved(to: *mut bindings::folio, from: *mut bindings::folio) {
    // SAFETY: As promised by the caller.
    unsafe { retry::moved(NonNull::new_unchecked(to), NonNull::new_unchecked(from)) };
}

/// Drops the folios that a task has collected.
///
/// # Safety
///
/// Only called by `dontcache_finish_batch()`, with a batch that nobody adds to any more.
#[export]
pub unsafe extern "C" fn dontcache_drop_batch(drops: *mut bindings::dontcache_batch) {
    // SAFETY: As promised by the caller.
    unsafe { batch::drop_batch(&mut *drops) };
}

/// Tries folios again that could not be dropped.
///
/// # Safety
///
/// Always safe to call. Only the function of a work item.
#[export]
pub unsafe extern "C" fn dontcache_retry_work(_work: *mut bindings::work_struct) {
    retry::run();
}

/// Room for the longest name of a policy and for what is certainly none.
const POLICY_LEN: usize = 16;

/// The sysctl `vm.dontcache_policy`: the name of the policy in force.
///
/// # Safety
///
/// Only called as the `proc_handler` of a table.
#[export]
pub unsafe extern "C" fn dontcache_policy_handler(
    _table: *const bindings::ctl_table,
    write: c_int,
    buffer: *mut c_void,
    lenp: *mut usize,
    ppos: *mut bindings::loff_t,
) -> c_int {
    let mut name = [0u8; POLICY_LEN];

    for (to, from) in name.iter_mut().zip(mapping::policy().name().bytes()) {
        *to = from;
    }

    let copy = bindings::ctl_table {
        data: name.as_mut_ptr().cast(),
        maxlen: POLICY_LEN as c_int,
        ..Default::default()
    };

    from_result(|| {
        // SAFETY: As promised by the caller, and the copy points to a string of that room.
        to_result(unsafe { bindings::proc_dostring(&copy, write, buffer, lenp, ppos) })?;
        if write != 0 {
            mapping::set_policy(CStr::from_bytes_until_nul(&name).map_err(|_| EINVAL)?)?;
        }
        Ok(0)
    })
}
