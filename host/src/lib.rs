// SPDX-License-Identifier: GPL-2.0

//! The kernel's own source of the pure parts, for tests that a kernel cannot run.

#![no_std]

#[path = "../../rust/kernel/dontcache/backlog.rs"]
pub mod backlog;
#[path = "../../rust/kernel/dontcache/batch.rs"]
pub mod batch;
#[path = "../../rust/kernel/dontcache/drop.rs"]
pub mod drop;
#[path = "../../rust/kernel/dontcache/limiter.rs"]
pub mod limiter;
#[path = "../../rust/kernel/dontcache/pace.rs"]
pub mod pace;
#[path = "../../rust/kernel/dontcache/test_queue.rs"]
pub mod test_queue;
