// SPDX-License-Identifier: GPL-2.0

//! The mapping that an uncached write went to.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)

use super::policy::{
    self,
    Decision,
    Policy,
    Write, //
};
use crate::{
    bindings,
    dontcache::count,
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
#[inline]
pub fn policy() -> Policy {
    Policy::from_number(POLICY.load(Relaxed))
}

/// The policy for a mapping: its device may have its own.
///
/// # Safety
///
/// The file of the mapping is open.
#[inline]
unsafe fn policy_of(mapping: *mut bindings::address_space) -> Policy {
    #[cfg(CONFIG_DONTCACHE_PACED)]
    // SAFETY: As promised by the caller.
    if let Some(own) = unsafe { super::wb::policy_of(mapping) } {
        return own;
    }
    let _ = mapping;
    policy()
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

    /// Whether a write of `bytes` may begin, if writers are paced.
    ///
    /// Context: task that has the file open; its inode's lock may be held. Does not sleep.
    ///
    /// # Errors
    ///
    /// `EAGAIN` for one that is `nowait` and would have to wait. That of an earlier write, once:
    /// before anything is copied, or it would be taken for this one's. It stays for fsync().
    #[cfg(CONFIG_DONTCACHE_PACED)]
    #[inline]
    pub fn may_write(&self, bytes: i64, nowait: bool) -> Result {
        use super::dirty;

        let mapping = self.0.get();

        // SAFETY: The mapping is valid, and the file that it is of is open.
        unsafe {
            if policy_of(mapping) != Policy::Paced {
                return Ok(());
            }
            // A server looks for itself, and its client would be told of another's.
            if (*bindings::get_current()).flags & bindings::PF_KTHREAD == 0 {
                dirty::failed(mapping)?;
            }
            if nowait && dirty::must_wait(mapping, usize::try_from(bytes).unwrap_or(0)) {
                return Err(EAGAIN);
            }
        }
        Ok(())
    }

    /// Follows a write of `bytes` bytes at `first..=last`.
    ///
    /// `lazy` stands for `RWF_DONTCACHE_LAZY`, `nowait` for `IOCB_NOWAIT`. Errors of the writeback
    /// are the filesystem's to record: who calls fsync() next gets them.
    ///
    /// Context: task that has the file open, no locks held that writeback takes. May sleep unless
    /// `nowait`.
    #[inline]
    pub fn wrote(&self, first: i64, last: i64, bytes: isize, lazy: bool, nowait: bool) {
        let policy = if lazy {
            Policy::Lazy
        } else {
            // SAFETY: The file that the mapping is of is open.
            unsafe { policy_of(self.0.get()) }
        };

        // By itself, so that it does not pay for what the others need.
        if policy == Policy::Kick {
            if self.decide(policy, first, last, bytes, nowait) == Decision::Kick {
                self.kick();
            }
            return;
        }
        self.start(policy, first, last, bytes, nowait);
    }

    /// What follows such a write; see [`policy::decide`].
    #[inline]
    fn decide(
        &self,
        policy: Policy,
        first: i64,
        last: i64,
        bytes: isize,
        nowait: bool,
    ) -> Decision {
        let write = Write {
            first,
            last,
            bytes,
            busy: policy == Policy::Lazy && self.under_writeback(),
            nowait,
        };
        let decision = policy::decide(policy, &write, PAGE_SHIFT as u32);

        #[cfg(CONFIG_DONTCACHE_PACED)]
        // SAFETY: The mapping is valid.
        unsafe {
            crate::dontcache::trace::dontcache_decide(self.0.get(), first, last, decision.number())
        };
        decision
    }

    /// Wakes the flusher. For [`Mapping::wrote`].
    #[inline]
    fn kick(&self) {
        count(bindings::vm_event_item_DONTCACHE_KICK, 1);
        // SAFETY: The mapping is valid, and the file that it is of is open.
        unsafe { bindings::filemap_dontcache_kick_writeback(self.0.get()) };
    }

    /// As [`Mapping::wrote`], for policies that look at the range. For that only.
    #[inline(never)]
    fn start(&self, policy: Policy, first: i64, last: i64, bytes: isize, nowait: bool) {
        match self.decide(policy, first, last, bytes, nowait) {
            Decision::Nothing => (),
            Decision::Skip => count(bindings::vm_event_item_DONTCACHE_SKIP, 1),
            Decision::Kick => self.kick(),
            #[cfg(CONFIG_DONTCACHE_PACED)]
            Decision::Pace => {
                let (first, end) = (first as usize, (last as usize).saturating_add(1));

                // SAFETY: The mapping is valid, and the file that it is of is open.
                unsafe { super::dirty::wrote(self.0.get(), first, end, nowait) };
            }
            // There is none of that name.
            #[cfg(not(CONFIG_DONTCACHE_PACED))]
            Decision::Pace => (),
            Decision::Start(nr) => {
                // SAFETY: The mapping is valid, and the file that it is of is open.
                let started = unsafe {
                    bindings::filemap_dontcache_writeback(self.0.get(), first, last, nr as c_long)
                };

                count(
                    bindings::vm_event_item_DONTCACHE_START,
                    usize::try_from(started).unwrap_or(0),
                );
            }
        }
    }
}
