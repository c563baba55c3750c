// SPDX-License-Identifier: GPL-2.0

//! What follows an uncached write.
//!
//! ```text
//!   generic_write_sync()
//!        |
//!   filemap_dontcache_write()     shim, mm/filemap.c
//!        |
//!   mapping: Mapping::wrote()     what the decision needs to know
//!        |
//!   policy: decide()              nothing, skip, kick, or start
//!        |
//!   filemap_writeback(), or       of the range that was written, in the task that wrote
//!   filemap_dontcache_kick_writeback()   of what is oldest, by the flusher
//! ```

pub mod mapping;
pub mod policy;
