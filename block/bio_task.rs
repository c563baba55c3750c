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
/// Context: any but NMI, with preemption disabled.
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

/// Prepares the batches of all CPUs, and gives a worker to those that are online, and to others
/// when they come up. Without memory for that, the system's workqueue does the work.
///
/// # Safety
///
/// Only called by `init_bio()`, once, before the first bio is submitted.
#[export]
pub unsafe extern "C" fn bio_task_init() {
    // SAFETY: As promised by the caller.
    unsafe { bio::init() };
}

/// The function of the workers, which is what tells them from other threads.
///
/// # Safety
///
/// Only run by a thread that was made for the batch `batch`, one for each.
#[export]
pub unsafe extern "C" fn bio_task_worker(batch: *mut c_void) -> c_int {
    // SAFETY: As promised by the caller.
    unsafe { Batch::from_raw(batch.cast()).work() }
}
