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
    /// A worker is about to complete a bio.
    ///
    /// # Safety
    ///
    /// The caller owns `bio`.
    pub(super) unsafe fn bio_task_complete(bio: *mut bindings::bio);

    /// A worker has completed `nr` bios of `cpu`.
    ///
    /// # Safety
    ///
    /// Always safe to call.
    pub(super) unsafe fn bio_task_run(cpu: c_uint, nr: c_uint);

    /// `nr` folios of a mapping are about to be dropped under one lock.
    ///
    /// # Safety
    ///
    /// The mapping lives.
    pub(super) unsafe fn dontcache_drop(mapping: *mut bindings::address_space, nr: c_uint);

    /// A folio could not be dropped.
    ///
    /// # Safety
    ///
    /// The caller has a reference to `folio`.
    pub(super) unsafe fn dontcache_retry(folio: *mut bindings::folio);
}

#[cfg(CONFIG_DONTCACHE_PACED)]
declare_trace! {
    /// It is known what follows a write.
    ///
    /// # Safety
    ///
    /// The mapping lives.
    pub(super) unsafe fn dontcache_decide(
        mapping: *mut bindings::address_space,
        first: i64,
        last: i64,
        what: c_uint,
    );

    /// Writeback of pages was started.
    ///
    /// # Safety
    ///
    /// The mapping lives.
    pub(super) unsafe fn dontcache_piece(
        mapping: *mut bindings::address_space,
        first: usize,
        end: usize,
        started: usize,
    );

    /// A writer has waited.
    ///
    /// # Safety
    ///
    /// The mapping lives.
    pub(super) unsafe fn dontcache_pause(
        mapping: *mut bindings::address_space,
        footprint: usize,
        writeback: usize,
        bound: usize,
        micros: usize,
    );
}
