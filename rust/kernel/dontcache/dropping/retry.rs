// SPDX-License-Identifier: GPL-2.0

//! Folios that could not be dropped at once, and the work that looks at them again.

use super::{
    batch,
    folio::Folio,
    retries::{
        self,
        Retry,
        Slot,
        TRIES, //
    }, //
};
use crate::{
    alloc::flags::GFP_NOWAIT,
    bindings,
    dontcache::{
        count,
        trace, //
    },
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
    workqueue::Queue, //
};
use core::ptr::NonNull;

/// More than that are left in the cache.
static SLOTS: [Atomic<usize>; 2048] = [const { Atomic::new(0) }; 2048];

impl Slot for Atomic<usize> {
    fn word(&self) -> usize {
        self.load(Relaxed)
    }

    fn replace(&self, old: usize, new: usize) -> bool {
        self.cmpxchg(old, new, Full).is_ok()
    }
}

/// Sees to it that `folio` is tried again, or leaves it if there are too many.
///
/// Not if it is dirty or under writeback again: whose end is a try.
///
/// Context: any but NMI.
#[cold]
pub(super) fn later(folio: Folio<'_>) {
    if folio.is_to_be_written() {
        return;
    }

    // SAFETY: The folio is valid.
    unsafe { trace::dontcache_retry(folio.as_ptr()) };
    let retry = Retry {
        pfn: folio.pfn(),
        tries: 1,
    };

    if retries::remember(&SLOTS, retry) {
        count(bindings::vm_event_item_DONTCACHE_RETRY, 1);
        // SAFETY: Always safe to call.
        unsafe { bindings::dontcache_retry_later() };
    } else {
        count(bindings::vm_event_item_DONTCACHE_MISSED, 1);
    }
}

/// Sees to it that a folio is tried again which waited for that at `from`, and has moved to `to`.
///
/// Context: any but NMI.
///
/// # Safety
///
/// The caller has a reference to each.
#[cold]
pub unsafe fn moved(to: NonNull<bindings::folio>, from: NonNull<bindings::folio>) {
    // SAFETY: As promised by the caller.
    let (to, from) = unsafe { (Folio::from_raw(to), Folio::from_raw(from)) };

    if retries::is_remembered(&SLOTS, from.pfn()) {
        later(to);
    }
}

/// Tries all folios again that wait for that.
///
/// Context: a work item, one at a time. Sleeps for as long as others hold spinlocks, no longer: who
/// does not let a CPU's LRU batches be drained holds up no retries. Who takes memory offline puts
/// them off until that is done: what page frames are cannot be looked at meanwhile.
pub fn run() {
    let mut unlisted = false;

    // SAFETY: Always safe to call. What a page frame is stays, as long as it is looked at.
    if !unsafe { bindings::try_get_online_mems() } {
        // SAFETY: Always safe to call.
        unsafe { bindings::dontcache_retry_later() };
        return;
    }
    let outcome = retries::retry(&SLOTS, |retry| fails(retry, &mut unlisted));
    // SAFETY: The other half of `try_get_online_mems()`.
    unsafe { bindings::put_online_mems() };

    count(bindings::vm_event_item_DONTCACHE_MISSED, outcome.missed);
    if outcome.waiting > 0 {
        // SAFETY: Always safe to call.
        unsafe { bindings::dontcache_retry_later() };
    }
    if unlisted {
        drain();
    }
}

/// Whether some CPUs are to be left alone, as by `nohz_full=`, or once were, in a cpuset.
#[cfg(CONFIG_CPU_ISOLATION)]
fn isolated() -> bool {
    // SAFETY: Always safe to call.
    unsafe {
        bindings::housekeeping_enabled(bindings::hk_type_HK_TYPE_DOMAIN)
            || bindings::housekeeping_enabled(bindings::hk_type_HK_TYPE_KERNEL_NOISE)
    }
}

/// Whether some CPUs are to be left alone.
#[cfg(not(CONFIG_CPU_ISOLATION))]
fn isolated() -> bool {
    false
}

/// Has the batches drained in which folios wait to be on the LRU, once more if that is under way.
///
/// Each CPU runs a work item for that, and one that runs only what it is isolated for holds up all
/// who want the same, so it is not done then: at most 31 small folios for each CPU stay until they
/// are drained for another reason.
fn drain() {
    /// 1 while it is under way, 2 if it is wanted, 0 otherwise.
    static DRAIN: Atomic<usize> = Atomic::new(0);

    if isolated() || DRAIN.xchg(2, Full) != 0 {
        return;
    }

    // SAFETY: It is there before the first work item, and for good.
    let queue = unsafe { Queue::from_raw(bindings::system_dfl_wq) };
    let spawned = queue.try_spawn(GFP_NOWAIT, || loop {
        DRAIN.xchg(1, Full);
        // SAFETY: Always safe to call, and no locks are held.
        unsafe { bindings::lru_add_drain_all() };
        if DRAIN.cmpxchg(1, 0, Full).is_ok() {
            break;
        }
    });

    if spawned.is_err() {
        DRAIN.store(0, Relaxed);
    }
}

/// Tries to drop the folio that is at a page frame now; returns whether to try again.
///
/// It need not be the one of before, nor of a file. After page_idle_get_folio(), which finds folios
/// of page frames in the same way: what is not marked is let alone, since there is memory whose
/// owner frees it whatever the number of references is, as cma_release() does. What becomes such
/// memory between the look and the reference is as unlucky here as there.
///
/// One that is not on the LRU by its second try waits in a batch of some CPU's, where a small file
/// may be for good: that these are to be drained is said in `unlisted`.
fn fails(retry: Retry, unlisted: &mut bool) -> bool {
    // SAFETY: Any number may be looked up. The page may be looked at, as memory stays online.
    let (page, folio) = unsafe {
        let page = bindings::pfn_to_online_page(retry.pfn);

        if page.is_null() {
            return false;
        }
        (page, bindings::page_folio(page))
    };

    // SAFETY: As above. It may become another's until there is a reference.
    unsafe {
        if !Folio::is_marked(folio) {
            return false;
        }
        // No references for a moment: it is being split or moved.
        if !bindings::folio_try_get(folio) {
            return true;
        }
    }
    // SAFETY: There is a reference now.
    let found = unsafe { Folio::from_raw(NonNull::new_unchecked(folio)) };
    // SAFETY: As for the first look.
    let same = unsafe { bindings::page_folio(page) } == folio;
    let fails = same && found.is_dropbehind() && try_again(found, retry.tries, unlisted);

    // SAFETY: The reference is ours.
    unsafe {
        bindings::folio_put(folio);
        bindings::cond_resched();
    }
    fails
}

/// Tries to drop a folio for the `tries`th time; returns whether it failed.
fn try_again(folio: Folio<'_>, tries: usize, unlisted: &mut bool) -> bool {
    // Who has just allocated a folio marks it first, and then locks it by a plain store: it must
    // not be locked here before it is on the LRU, which comes after that.
    if !folio.is_lru() {
        *unlisted |= (2..TRIES).contains(&tries);
        return true;
    }
    if tries < TRIES {
        return batch::fails(folio);
    }
    // Nobody comes back for it: from here on it is as if written by an ordinary write. Not if it
    // cannot be locked, but then somebody uses it, who may find it by a lookup that clears the
    // mark. Nor if another writeback ended meanwhile, and found it locked by this try.
    batch::fails_finally(folio, |locked| {
        if !retries::is_to_be_tried(&SLOTS, folio.pfn()) && !locked.is_to_be_committed() {
            locked.keep();
        }
    })
}
