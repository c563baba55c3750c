// SPDX-License-Identifier: GPL-2.0

//! The mapping that an uncached write went to.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)

use super::limiter::{
    self,
    Decision,
    Policy,
    Write, //
};
use crate::{
    bindings,
    page::PAGE_SHIFT,
    prelude::*,
    str::CStr,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    types::Opaque, //
};

/// What `RWF_DONTCACHE` does now. `RWF_DONTCACHE_LAZY` does not look at it.
static POLICY: Atomic<u32> = Atomic::new(Policy::DEFAULT as u32);

/// The policy in force.
pub fn policy() -> Policy {
    Policy::from_number(POLICY.load(Relaxed))
}

/// Puts the policy called `name` in force, for writes that finish from now on.
///
/// # Errors
///
/// `EINVAL`, with the policy unchanged, if there is none of that name.
pub fn set_policy(name: &CStr) -> Result {
    let policy = Policy::from_name(name.to_bytes()).ok_or(EINVAL)?;

    POLICY.store(policy as u32, Relaxed);
    Ok(())
}

/// A C `struct address_space`.
#[repr(transparent)]
pub struct Mapping(Opaque<bindings::address_space>);

impl Mapping {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` is a mapping that lives for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::address_space) -> &'a Self {
        // CAST: `Self` is transparent over `struct address_space`.
        // SAFETY: `ptr` is valid for `'a` by the safety requirement.
        unsafe { &*ptr.cast() }
    }

    /// Whether folios of the mapping are under writeback. May be out of date when it returns.
    fn under_writeback(&self) -> bool {
        // SAFETY: The mapping is valid, and the tag may be read without locks.
        unsafe { bindings::dontcache_mapping_busy(self.0.get()) }
    }

    /// Wakes the flusher of the mapping's device, as upstream 7.3 does. Does not sleep.
    fn kick(&self) {
        // SAFETY: The mapping is valid, and the caller of `wrote()` holds a reference to its host.
        unsafe { bindings::filemap_dontcache_kick_writeback(self.0.get()) };
    }

    /// Follows a write of `bytes` bytes at `first..=last`.
    ///
    /// `lazy` stands for `RWF_DONTCACHE_LAZY`, `nowait` for `IOCB_NOWAIT`.
    ///
    /// Returns the number of pages of that range that the caller has to start writeback on: 0 for
    /// none, `isize::MAX` for all of them. Kicks the flusher itself.
    ///
    /// Context: task that has the file open, no locks held that writeback takes. Does not sleep.
    pub fn wrote(&self, first: i64, last: i64, bytes: isize, lazy: bool, nowait: bool) -> isize {
        let policy = if lazy { Policy::Lazy } else { policy() };
        let write = Write {
            first,
            last,
            bytes,
            busy: self.under_writeback(),
            nowait,
        };
        let decision = limiter::decide(policy, &write, PAGE_SHIFT as u32);

        let (event, nr) = match decision {
            Decision::Nothing => return 0,
            Decision::Skip => (bindings::dontcache_event_DONTCACHE_SKIP, 0),
            Decision::Kick => {
                self.kick();
                (bindings::dontcache_event_DONTCACHE_KICK, 0)
            }
            Decision::Start(nr) => (bindings::dontcache_event_DONTCACHE_START, nr),
        };

        // SAFETY: `event` is one of the enum's values.
        unsafe { bindings::dontcache_count(event, 1) };
        nr
    }
}
