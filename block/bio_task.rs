// SPDX-License-Identifier: GPL-2.0

//! Task-context bio completion: the entry points that block/bio.c calls.
//!
//! Design and state machine: [`kernel::dontcache::completion`].

use core::ptr::NonNull;
use kernel::{
    bindings,
    dontcache::completion::worker::{
        self,
        Batch, //
    },
    prelude::*, //
};

/// Hands `bio` to the worker of `batch`.
///
/// Context: any but NMI, with interrupts off.
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
    // SAFETY: The batch is a per-CPU variable, and `bio` is as promised by the caller.
    unsafe { Batch::from_raw(batch).enqueue(NonNull::new_unchecked(bio)) };
}

/// Gives each CPU a worker, now or when it comes up. Without memory for that at boot it panics.
///
/// # Safety
///
/// Only called by `init_bio()`, once, before the first bio is submitted.
#[export]
pub unsafe extern "C" fn bio_task_init() {
    // SAFETY: As promised by the caller.
    unsafe { worker::init() };
}
