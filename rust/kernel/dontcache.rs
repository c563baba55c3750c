// SPDX-License-Identifier: GPL-2.0

//! Uncached buffered I/O (`RWF_DONTCACHE`): the three engines behind it.
//!
//! C header: [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)
//!
//! ```text
//!   pwritev2(), io_uring                   a device's interrupt
//!        |                                      |
//!   [`writeback`]: what is to be           [`completion`]: finished bios
//!   written back after a write             go to a task of their CPU
//!        |                                      |
//!   the device                             [`dropping`]: folios whose writeback
//!                                          has ended leave the page cache
//! ```
//!
//! Files that are pure have no bindings and no `unsafe`, and are built and tested on the host as
//! well. The others are thin. Data has one way, from C to Rust, and Rust acts through functions of
//! the kernel's.

use crate::{
    bindings,
    prelude::*, //
};

pub mod completion;
pub mod dropping;
mod trace;
pub mod writeback;

/// Adds to a counter in `/proc/vmstat`.
#[inline]
fn count(event: bindings::vm_event_item, nr: usize) {
    // SAFETY: `event` is one of the enum's values.
    unsafe { bindings::count_vm_events(event, nr as c_long) };
}
