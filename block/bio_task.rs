// SPDX-License-Identifier: GPL-2.0

//! Task-context bio completion: the entry points that block/bio.c calls.
//!
//! Design and state machine: [`kernel::dontcache`].

use core::ptr::NonNull;
use kernel::{
    bindings,
    dontcache::bio::{
        self,
        Batch, //
    },
    prelude::*, //
};

/// Hands `bio` to the worker of `batch`.
///
/// Context: any but NMI, with interrupts disabled.
///
/// # Safety
///
/// Only called by `__bio_complete_in_task()`, with the batch of this CPU and a finished bio that
/// has a `bi_end_io` and is nobody else's.
#[export]
pub unsafe extern "C" fn bio_task_enqueue(
    batch: *mut bindings::bio_task_batch,
    bio: *mut bindings::bio,
) {
    // SAFETY: `init_bio()` has prepared all batches, and `bio` is as promised by the caller.
    unsafe { Batch::from_raw(batch).enqueue(NonNull::new_unchecked(bio)) };
}

/// Allocates the workqueue that is passed to `bio_task_init()`; never null.
///
/// # Safety
///
/// Only called by `init_bio()`, once.
#[export]
pub unsafe extern "C" fn bio_task_alloc_wq() -> *mut bindings::workqueue_struct {
    bio::alloc_wq().as_ptr()
}

/// Prepares the batch of `cpu`.
///
/// # Safety
///
/// Only called by `init_bio()`, once for each possible CPU, with the zeroed per-CPU batch of it
/// and what `bio_task_alloc_wq()` returned.
#[export]
pub unsafe extern "C" fn bio_task_init(
    batch: *mut bindings::bio_task_batch,
    cpu: c_int,
    wq: *mut bindings::workqueue_struct,
) {
    // SAFETY: As promised by the caller.
    unsafe { Batch::from_raw(batch).init(cpu, NonNull::new_unchecked(wq)) };
}
