// SPDX-License-Identifier: GPL-2.0

//! Tracepoints.
//!
//! C header: [`include/trace/events/dontcache.h`](srctree/include/trace/events/dontcache.h)

use crate::{
    bindings,
    prelude::*,
    tracepoint::declare_trace, //
};

declare_trace! {
    /// A finished bio is left to a worker.
    ///
    /// # Safety
    ///
    /// The caller owns `bio`.
    pub(super) unsafe fn bio_task_defer(bio: *mut bindings::bio);

    /// A worker has completed `nr` bios of `cpu`, of which one has waited for `waited` us.
    ///
    /// # Safety
    ///
    /// Always safe to call.
    pub(super) unsafe fn bio_task_run(cpu: c_int, nr: c_ulong, waited: c_ulong);

    /// A folio could not be dropped.
    ///
    /// # Safety
    ///
    /// The caller has a reference to `folio`.
    pub(super) unsafe fn dontcache_retry(folio: *mut bindings::folio, state: c_uint, tries: c_uint);
}
