// SPDX-License-Identifier: GPL-2.0

//! Folios that leave the page cache when their data is on stable storage.
//!
//! ```text
//!   folio_end_dropbehind()     shim, mm/filemap.c
//!        |
//!   batch: end_writeback()     in an interrupt: retry, later
//!        |                     in a task that collects folios: with up to 30 others
//!   folio: examine() -> verdict: drop, nothing, retry, or leave
//!        |
//!   folios_remove_clean()      mm/truncate.c, one i_lock and i_pages lock for each mapping
//!        |
//!   retry: what was locked or refused, by its page frame, four times within a second
//! ```

pub mod batch;
pub mod folio;
pub mod retries;
pub mod retry;
pub mod verdict;
