// SPDX-License-Identifier: GPL-2.0

//! Folios that could not be dropped at once, and the work that looks at them again.

use super::{
    batch,
    folio::Folio,
    retries::{
        self,
        Retry,
        Slot, //
    }, //
};
use crate::{
    bindings,
    dontcache::{
        count,
        trace, //
    },
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    }, //
};
use core::ptr::NonNull;

/// More than that are left in the cache.
static SLOTS: [Atomic<usize>; 2048] = [const { Atomic::new(0) }; 2048];

impl Slot for Atomic<usize> {
    fn claim(&self, word: usize) -> bool {
        self.load(Relaxed) == 0 && self.cmpxchg(0, word, Full).is_ok()
    }

    fn free(&self) -> usize {
        if self.load(Relaxed) == 0 {
            return 0;
        }
        self.xchg(0, Full)
    }
}

/// Sees to it that `folio` is tried again, or leaves it if there are too many.
///
/// Context: any but NMI.
#[cold]
pub(super) fn later(folio: Folio<'_>) {
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

/// Tries all folios again that wait for that.
///
/// Context: a work item, one at a time.
pub fn run() {
    let outcome = retries::retry(&SLOTS, |retry| fails(retry.pfn));

    count(bindings::vm_event_item_DONTCACHE_MISSED, outcome.missed);
    if outcome.waiting > 0 {
        // SAFETY: Always safe to call.
        unsafe { bindings::dontcache_retry_later() };
    }
}

/// Tries to drop the folio that is at a page frame now; returns whether to try again.
///
/// It need not be the one of before, nor of a file. After page_idle_get_folio(), which finds folios
/// of page frames in the same way.
fn fails(pfn: usize) -> bool {
    // SAFETY: Any number may be looked up. A page may be looked at while it is online, as others
    // do that walk over page frames.
    let (page, folio) = unsafe {
        let page = bindings::pfn_to_online_page(pfn);

        if page.is_null() {
            return false;
        }
        (page, bindings::page_folio(page))
    };

    // SAFETY: It may become another's until there is a reference.
    if !unsafe { bindings::folio_try_get(folio) } {
        return false;
    }
    // SAFETY: There is a reference now.
    let found = unsafe { Folio::from_raw(NonNull::new_unchecked(folio)) };
    // SAFETY: As for the first look.
    let same = unsafe { bindings::page_folio(page) } == folio;
    // Who has just allocated a folio marks it first, and then locks it by a plain store: it must
    // not be locked here before it is on the LRU, which comes after that.
    let fails = same && found.is_dropbehind() && (!found.is_lru() || batch::fails(found));

    // SAFETY: The reference is ours.
    unsafe {
        bindings::folio_put(folio);
        bindings::cond_resched();
    }
    fails
}
