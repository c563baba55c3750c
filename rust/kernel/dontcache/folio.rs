// SPDX-License-Identifier: GPL-2.0

//! Folios that are dropped from the page cache once they are on stable storage.
//!
//! C headers: [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h),
//! [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)

use super::{
    drop::{
        self,
        State,
        Verdict,
        Why, //
    },
    trace,
};
use crate::bindings;
use core::ptr::NonNull;

/// A folio to which its owner has a reference.
type Folio = NonNull<bindings::folio>;

/// Folios that are dropped together, those of one mapping under one `i_lock` and one `i_pages`
/// lock.
///
/// # Invariants
///
/// The first `nr` of `folios` are valid, and the batch owns a reference to each of them.
#[repr(transparent)]
pub struct Drops(bindings::folio_batch);

impl Drops {
    /// An empty batch.
    pub fn new() -> Self {
        // INVARIANT: `nr` is 0.
        Self(bindings::folio_batch::default())
    }

    /// The batch for C, or for [`Drops::from_raw`].
    pub fn as_ptr(&mut self) -> *mut bindings::folio_batch {
        &raw mut self.0
    }

    /// Makes a batch of what [`Drops::as_ptr`] returned.
    ///
    /// # Safety
    ///
    /// `ptr` is of a batch that lives for `'a` and that nobody else uses meanwhile.
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::folio_batch) -> &'a mut Self {
        // CAST: `Self` is transparent over `struct folio_batch`.
        // SAFETY: As promised by the caller.
        unsafe { &mut *ptr.cast() }
    }

    /// Adds a folio; drops all of them if there is no room for another.
    ///
    /// Context: task. Does not sleep.
    ///
    /// # Safety
    ///
    /// The folio is valid, and the batch gets the caller's reference to it.
    pub unsafe fn add(&mut self, folio: Folio) {
        // SAFETY: As promised by the caller.
        if !unsafe { self.push(folio) } {
            self.flush();
        }
    }

    /// Adds a folio; returns whether there is room for another.
    ///
    /// # Safety
    ///
    /// The folio is valid, there is room for it, and the batch gets the caller's reference.
    unsafe fn push(&mut self, folio: Folio) -> bool {
        let nr = usize::from(self.0.nr);

        // INVARIANT: The batch owns the caller's reference.
        if let Some(at) = self.0.folios.get_mut(nr) {
            *at = folio.as_ptr();
            self.0.nr = self.0.nr.wrapping_add(1);
        }
        nr.wrapping_add(1) < self.0.folios.len()
    }

    /// Drops all folios that can be dropped, and sees to the others.
    ///
    /// Context: task. Does not sleep: who holds a folio's lock is not waited for.
    pub fn flush(&mut self) {
        self.flush_after(0);
    }

    /// The same for folios that have been tried `tries` times before.
    fn flush_after(&mut self, tries: u32) {
        let mut left = Self::new();

        for folio in self.take() {
            // SAFETY: The reference was the batch's. There is room for what was in a batch.
            unsafe {
                if sentence(folio, tries) {
                    left.push(folio);
                }
            }
        }
        while left.0.nr != 0 {
            left.remove_group(tries);
        }
    }

    /// Removes the folios of the mapping that the first one is of; the others stay. All are locked
    /// and to be dropped.
    fn remove_group(&mut self, tries: u32) {
        let mut group = Self::new();
        let mut mapping = None;

        for folio in self.take() {
            // SAFETY: The folio is locked and in the page cache.
            let of = unsafe { bindings::dontcache_mapping(folio.as_ptr()) };
            let to = if of == *mapping.get_or_insert(of) {
                &mut group
            } else {
                &mut *self
            };

            // SAFETY: The reference was the batch's. There is room for what was in a batch.
            unsafe { to.push(folio) };
        }
        group.remove(tries);
    }

    /// Empties the batch; the references go over to the caller.
    fn take(&mut self) -> impl Iterator<Item = Folio> + use<> {
        let nr = usize::from(self.0.nr);

        // INVARIANT: The batch owns nothing.
        self.0.nr = 0;
        self.0.folios.into_iter().take(nr).filter_map(NonNull::new)
    }

    /// Removes the folios of the batch, of which there are some, all of one mapping.
    fn remove(&mut self, tries: u32) {
        // What cannot be removed stays in the batch, in the same order.
        //
        // SAFETY: There is a reference to each folio, by the type invariants. All are as above.
        unsafe { bindings::dontcache_remove(self.as_ptr()) };

        for folio in self.take() {
            let state = bindings::DONTCACHE_FOLIO_LOCKED | bindings::DONTCACHE_FOLIO_DIRTY;

            // SAFETY: The reference was the batch's.
            unsafe { again(folio, state, tries) };
        }
    }
}

impl Default for Drops {
    fn default() -> Self {
        Self::new()
    }
}

/// Drops `folio`, as part of `batch` or at once, if nothing is in the way.
///
/// Context: task. Does not sleep.
///
/// # Safety
///
/// The folio is valid, and the caller's reference goes over. `batch` is null or as for
/// [`Drops::from_raw`].
pub unsafe fn drop_folio(folio: Folio, batch: *mut bindings::folio_batch, tries: u32) {
    if !batch.is_null() {
        // SAFETY: As promised by the caller.
        unsafe { Drops::from_raw(batch).add(folio) };
        return;
    }

    let mut one = Drops::new();

    // SAFETY: As promised by the caller, and there is room for one.
    unsafe { one.push(folio) };
    one.flush_after(tries);
}

/// Decides about a folio; returns whether it is to be dropped, locked and with its reference.
///
/// # Safety
///
/// The folio is valid, and the caller has a reference, which is gone unless this returns `true`.
unsafe fn sentence(folio: Folio, tries: u32) -> bool {
    // SAFETY: There is a reference to the folio.
    let bits = unsafe { bindings::dontcache_lock(folio.as_ptr()) };
    let has = |bit| bits & bit != 0;
    let state = State {
        locked: has(bindings::DONTCACHE_FOLIO_LOCKED),
        gone: has(bindings::DONTCACHE_FOLIO_GONE),
        writeback: has(bindings::DONTCACHE_FOLIO_WRITEBACK),
        dirty: has(bindings::DONTCACHE_FOLIO_DIRTY),
        mapped: has(bindings::DONTCACHE_FOLIO_MAPPED),
        referenced: has(bindings::DONTCACHE_FOLIO_REFERENCED),
    };
    let verdict = drop::decide(state, tries);

    if verdict == Verdict::Drop {
        return true;
    }

    // SAFETY: The lock is ours if `locked`, and so is the reference.
    unsafe {
        if let Verdict::Leave(Why::Mapped | Why::Referenced) = verdict {
            bindings::dontcache_leave(folio.as_ptr());
        }
        if state.locked {
            bindings::folio_unlock(folio.as_ptr());
        }
    }
    match verdict {
        Verdict::Leave(why) => count(match why {
            Why::Mapped => bindings::dontcache_event_DONTCACHE_MAPPED,
            Why::Referenced => bindings::dontcache_event_DONTCACHE_REFERENCED,
            Why::Tried => bindings::dontcache_event_DONTCACHE_MISSED,
        }),
        Verdict::Retry => {
            // SAFETY: The reference is ours.
            unsafe { again(folio, bits, tries) };
            return false;
        }
        Verdict::Drop | Verdict::Nothing => (),
    }
    // SAFETY: The reference is ours.
    unsafe { bindings::dontcache_put(folio.as_ptr()) };
    false
}

/// Sees to it that an unlocked folio is tried again, or leaves it if there are too many.
///
/// # Safety
///
/// The folio is valid, and the caller's reference goes over.
unsafe fn again(folio: Folio, state: u32, tries: u32) {
    // SAFETY: The reference is ours.
    unsafe { trace::dontcache_retry(folio.as_ptr(), state, tries) };
    // SAFETY: The reference goes over if this returns `true`, or is still ours.
    unsafe {
        if tries < drop::TRIES && bindings::dontcache_retry(folio.as_ptr(), tries.wrapping_add(1)) {
            count(bindings::dontcache_event_DONTCACHE_RETRY);
        } else {
            count(bindings::dontcache_event_DONTCACHE_MISSED);
            bindings::dontcache_put(folio.as_ptr());
        }
    }
}

fn count(event: bindings::dontcache_event) {
    // SAFETY: `event` is one of the enum's values.
    unsafe { bindings::dontcache_count(event, 1) };
}
