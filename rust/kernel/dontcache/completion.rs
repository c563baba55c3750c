// SPDX-License-Identifier: GPL-2.0

//! Finished bios that are completed in task context.
//!
//! ```text
//!   bio_endio()                    a device's interrupt
//!        |
//!   __bio_complete_in_task()       shim, block/bio.c
//!        |
//!   worker: Batch::enqueue()       the batch of this CPU
//!        |
//!   batch: push()                  wakes the worker if it was empty
//!   - - - - - - - - - - - - - - -
//!   worker: Batch::work()          the thread bio_task/N
//!        |
//!   batch: take() -> backlog: run()
//!        |
//!   bi_end_io()                    ends writeback: on to dropping
//! ```

pub mod backlog;
pub mod batch;
#[cfg(CONFIG_DONTCACHE_RUST_KUNIT_TEST)]
pub mod test_queue;
pub mod worker;
