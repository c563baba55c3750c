// SPDX-License-Identifier: GPL-2.0

//! The kernel's own source of the pure parts, for tests that a kernel cannot run.

#![no_std]

/// Finished bios.
#[path = "../../rust/kernel/dontcache/completion"]
pub mod completion {
    pub mod backlog;
    pub mod batch;
    pub mod test_queue;
}

/// Folios that leave the page cache.
#[path = "../../rust/kernel/dontcache/dropping"]
pub mod dropping {
    pub mod retries;
    pub mod verdict;
}

/// What follows a write.
#[path = "../../rust/kernel/dontcache/writeback"]
pub mod writeback {
    pub mod control;
    pub mod pending;
    pub mod policy;
    pub mod room;
    pub mod units;
}
