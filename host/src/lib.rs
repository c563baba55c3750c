// SPDX-License-Identifier: GPL-2.0

//! The kernel's own source of the pure parts, for tests that a kernel cannot run.

#![no_std]

#[path = "../../rust/kernel/dontcache/batch.rs"]
pub mod batch;
#[path = "../../rust/kernel/dontcache/limiter.rs"]
pub mod limiter;
