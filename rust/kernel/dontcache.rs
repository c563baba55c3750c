// SPDX-License-Identifier: GPL-2.0

//! Uncached buffered I/O (`RWF_DONTCACHE`): the two engines behind it.
//!
//! C header: [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)
//!
//! An uncached write leaves its data in the page cache until it is on stable storage. Then the
//! folios are dropped. Two engines see to that:
//!
//! ```text
//!   pwritev2(), io_uring                              device interrupt
//!        |                                                  |
//!   generic_write_sync()                               bio_endio()
//!        |                                                  |
//!   filemap_dontcache_write()   shim, mm/filemap.c     __bio_complete_in_task()   shim, block/bio.c
//!        |                                                  |
//!   dontcache_limit()       mm/filemap_dontcache.rs    bio_task_enqueue()         block/bio_task.rs
//!        |                                                  |
//!   mapping: what the decision needs to know           bio: this CPU's batch, and its worker
//!        |                                                  |
//!   limiter: nothing, skip, kick, or start             batch: push
//!                                                           |
//!                                              worker   batch: take -> backlog: a run
//!                                                           |                 pace: when the next
//!                                                       bi_end_io()
//!                                                           |
//!                                                       folio_end_dropbehind()  shim, mm/filemap.c
//!                                                           |
//!                                                       folio: this run's folios
//!                                                           |
//!                                                       drop: drop, again, or leave
//! ```
//!
//! [`limiter`], [`batch`], [`backlog`], [`pace`] and [`drop`] are pure: no bindings, no `unsafe`,
//! numbers in and decisions out. They are built and tested on the host as well. All `unsafe` code
//! is in [`bio`], [`folio`] and [`mapping`].

pub mod backlog;
pub mod batch;
pub mod bio;
pub mod drop;
pub mod folio;
pub mod limiter;
pub mod mapping;
pub mod pace;
#[cfg(CONFIG_DONTCACHE_RUST_KUNIT_TEST)]
pub mod test_queue;
mod trace;
