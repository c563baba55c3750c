// SPDX-License-Identifier: GPL-2.0

//! What there is to see and to set of a device: debugfs, and its directory in `/sys/class/bdi/`.
//!
//! Documentation:
//! [`admin-guide/mm/dontcache.rst`](srctree/Documentation/admin-guide/mm/dontcache.rst)

use super::{
    device::Device,
    policy::Policy,
    units::Micros,
    wb::{
        Wb,
        ALL,
        WRITEBACK, //
    }, //
};
use crate::{
    bindings,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// Pauses of less than 1, 2, 4 ... 256 ms, and others.
const LENGTHS: usize = 10;

/// What has been done so far.
pub(super) struct Report {
    pieces: Atomic<usize>,
    pages: Atomic<usize>,
    pauses: [Atomic<usize>; LENGTHS],
}

impl Report {
    pub(super) fn new() -> Self {
        Self {
            pieces: Atomic::new(0),
            pages: Atomic::new(0),
            pauses: [const { Atomic::new(0) }; LENGTHS],
        }
    }

    /// Writeback of `pages` was started.
    pub(super) fn started(&self, pages: usize) {
        self.pieces.fetch_add(1, Relaxed);
        self.pages.fetch_add(pages, Relaxed);
    }

    /// A writer waited for so long.
    pub(super) fn paused(&self, pause: Micros) {
        let at = usize::BITS - (pause.0 / 1000).leading_zeros();

        self.pauses[(at as usize).min(LENGTHS - 1)].fetch_add(1, Relaxed);
    }
}

/// What Rust knows of the device of `/sys/class/bdi/`.
///
/// # Safety
///
/// `dev` is the device of a bdi, and registered for `'a`.
unsafe fn of_class<'a>(dev: *mut bindings::device) -> Result<&'a Device> {
    // SAFETY: As promised by the caller: it is what bdi_register() has set.
    unsafe {
        let bdi = (*dev)
            .driver_data
            .cast::<bindings::backing_dev_info>()
            .as_ref();

        bdi.and_then(|bdi| bdi.wb.dontcache.cast::<Wb>().as_ref())
            .map(|wb| &**wb.device())
            .ok_or(ENOMEM)
    }
}

const DEFAULT: &str = "default";

/// Prints the policy of a device into a page.
///
/// # Safety
///
/// As for a `show` of a `struct device_attribute` of a bdi.
pub unsafe fn show_policy(dev: *mut bindings::device, page: *mut c_char) -> Result<isize> {
    // SAFETY: As promised by the caller.
    let policy = unsafe { of_class(dev)? }.policy();
    let name = policy.map_or(DEFAULT, Policy::name);

    // SAFETY: `name` has that length.
    Ok(unsafe {
        bindings::sysfs_emit(
            page,
            c"%.*s\n".as_char_ptr(),
            name.len() as c_int,
            name.as_ptr(),
        )
    } as isize)
}

/// Sets the policy of a device: a name, or `default` for that of the sysctl.
///
/// # Safety
///
/// As for a `store` of a `struct device_attribute` of a bdi.
///
/// # Errors
///
/// `EINVAL`, with the policy unchanged, if there is none of that name.
pub unsafe fn set_policy(dev: *mut bindings::device, text: &[u8]) -> Result {
    let name = text.strip_suffix(b"\n").unwrap_or(text);
    let policy = if name == DEFAULT.as_bytes() {
        None
    } else {
        Some(Policy::from_name(name).ok_or(EINVAL)?)
    };

    // SAFETY: As promised by the caller.
    unsafe { of_class(dev)? }.set_policy(policy);
    Ok(())
}

/// Prints the largest bound of a device in bytes, 0 if nobody said, into a page.
///
/// # Safety
///
/// As for [`show_policy`].
pub unsafe fn show_most(dev: *mut bindings::device, page: *mut c_char) -> Result<isize> {
    // SAFETY: As promised by the caller.
    let bytes = match unsafe { of_class(dev)? }.most.load(Relaxed) {
        usize::MAX => 0,
        pages => pages << PAGE_SHIFT,
    };

    // SAFETY: It is a page.
    Ok(unsafe { bindings::sysfs_emit(page, c"%lu\n".as_char_ptr(), bytes) } as isize)
}

/// Sets the largest bound of a device.
///
/// # Safety
///
/// As for [`set_policy`]; `text` ends with a null.
///
/// # Errors
///
/// `EINVAL` or `ERANGE`, with the bound unchanged, for what is no number of bytes.
pub unsafe fn set_most(dev: *mut bindings::device, text: *const c_char) -> Result {
    let mut bytes: c_ulonglong = 0;

    // SAFETY: As promised by the caller.
    crate::error::to_result(unsafe { bindings::kstrtoull(text, 0, &mut bytes) })?;

    let pages = match usize::try_from(bytes)? {
        0 => usize::MAX,
        bytes => bytes.div_ceil(PAGE_SIZE).clamp(2, usize::MAX >> PAGE_SHIFT),
    };

    // SAFETY: As promised by the caller.
    unsafe { of_class(dev)? }.most.store(pages, Relaxed);
    Ok(())
}

/// Prints what is known of a `bdi_writeback`.
///
/// # Safety
///
/// Both stay, and nobody else prints to the file.
pub unsafe fn show(file: *mut bindings::seq_file, wb: *mut bindings::bdi_writeback) {
    // SAFETY: As promised by the caller.
    let (file, known) = unsafe {
        (
            SeqFile::from_raw(file),
            (*wb).dontcache.cast::<Wb>().as_ref(),
        )
    };
    let Some(known) = known else {
        return;
    };
    // SAFETY: As promised by the caller.
    let (all, writeback) = unsafe {
        (
            bindings::dontcache_wb_stat(wb, ALL, true),
            bindings::dontcache_wb_stat(wb, WRITEBACK, true),
        )
    };
    let (control, waiting) = known.measured();
    let files = known.listed();
    let kb = PAGE_SIZE >> 10;
    let report = &known.report;

    seq_print!(file, "bound      {:>10} kB\n", known.bound() * kb);
    seq_print!(file, "footprint  {:>10} kB\n", all * kb);
    seq_print!(file, "writeback  {:>10} kB\n", writeback * kb);
    seq_print!(
        file,
        "bandwidth  {:>10} kB/s\n",
        control.rate().in_time(Micros::from_millis(1000)).0 * kb
    );
    seq_print!(file, "latency    {:>10} us\n", control.latency().0);
    seq_print!(
        file,
        "queue      {:>10} kB\n",
        match known.queued() {
            usize::MAX => 0,
            pages => pages * kb,
        }
    );
    seq_print!(file, "waiting    {:>10}\n", waiting);
    seq_print!(file, "files      {:>10} of {}\n", files.0, files.1);
    seq_print!(file, "pieces     {:>10}\n", report.pieces.load(Relaxed));
    seq_print!(
        file,
        "written    {:>10} kB\n",
        report.pages.load(Relaxed) * kb
    );
    for (at, pauses) in report.pauses.iter().enumerate() {
        if at + 1 < LENGTHS {
            seq_print!(
                file,
                "pauses < {:>3} ms {:>7}\n",
                1 << at,
                pauses.load(Relaxed)
            );
        } else {
            seq_print!(file, "pauses longer   {:>7}\n\n", pauses.load(Relaxed));
        }
    }
}
