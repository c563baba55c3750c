// SPDX-License-Identifier: GPL-2.0

//! What follows an uncached write.
//!
//! ```text
//!   generic_write_sync()          include/linux/fs.h
//!        |
//!   dontcache_write()             mm/filemap_dontcache.rs
//!        |
//!   mapping: Mapping::wrote()     what the decision needs to know
//!        |
//!   policy: decide()              nothing, skip, kick, start, or pace
//!        |                               |
//!        |                         dirty: wrote(), of pending: what is good to be written
//!        |                         wb: pace(), of control: how much at a time
//!        |
//!   filemap_writeback(), or       of the range that was written, in the task that wrote
//!   filemap_dontcache_kick_writeback()   of what is oldest, by the flusher
//! ```

#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod control;
#[cfg(CONFIG_DONTCACHE_PACED)]
mod device;
#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod dirty;
pub mod mapping;
#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod pending;
pub mod policy;
#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod report;
#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod room;
#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod units;
#[cfg(CONFIG_DONTCACHE_PACED)]
mod waiters;
#[cfg(CONFIG_DONTCACHE_PACED)]
pub mod wb;
