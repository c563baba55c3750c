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
use crate::{
    bindings,
    prelude::*, //
};
use core::ptr::{
    self,
    NonNull, //
};

/// A folio to which its owner has a reference.
type Folio = NonNull<bindings::folio>;

/// How many folios are dropped together.
const DROPS: usize = bindings::DONTCACHE_DROPS as usize;

/// Folios that are dropped together, those of one mapping under one `i_lock` and one `i_pages`
/// lock.
///
/// # Invariants
///
/// The first `nr` of `folios` are valid, and the batch owns a reference to each of them.
pub struct Drops {
    nr: usize,
    folios: [*mut bindings::folio; DROPS],
}

impl Drops {
    /// An empty batch.
    pub const fn new() -> Self {
        // INVARIANT: There are none.
        Self {
            nr: 0,
            folios: [ptr::null_mut(); DROPS],
        }
    }

    /// Adds a folio; drops all of them if there is no room for another.
    ///
    /// Context: task. Does not sleep.
    ///
    /// # Safety
    ///
    /// The folio is valid, and the batch gets the caller's reference to it.
    pub unsafe fn add(&mut self, folio: Folio) {
        // INVARIANT: The batch owns the caller's reference.
        if let Some(at) = self.folios.get_mut(self.nr) {
            *at = folio.as_ptr();
            self.nr = self.nr.wrapping_add(1);
        }
        if self.nr == DROPS {
            self.flush();
        }
    }

    /// Drops all folios that can be dropped, and sees to the others.
    ///
    /// Context: task. Does not sleep: who holds a folio's lock is not waited for.
    pub fn flush(&mut self) {
        // INVARIANT: The references go over to `drop_folios()`.
        let nr = core::mem::replace(&mut self.nr, 0);

        if let Some(folios) = self.folios.get_mut(..nr) {
            // SAFETY: There is a reference to each of them, by the type invariants.
            unsafe { drop_folios(folios, 0) };
        }
    }
}

impl Default for Drops {
    fn default() -> Self {
        Self::new()
    }
}

/// Drops `folio` if nothing is in the way: at once, or with others if `drops` is not null.
///
/// Context: task. Does not sleep.
///
/// # Safety
///
/// The folio is valid, and the caller's reference goes over. `drops` is null or points to the
/// [`Drops`] of the calling worker, which it does not use meanwhile.
pub unsafe fn drop_folio(folio: Folio, drops: *mut c_void, tries: u32) {
    if drops.is_null() {
        // SAFETY: As promised by the caller.
        unsafe { drop_folios(&mut [folio.as_ptr()], tries) };
    } else {
        // SAFETY: As promised by the caller.
        unsafe { (*drops.cast::<Drops>()).add(folio) };
    }
}

/// Drops folios that have been tried `tries` times before; shuffles them.
///
/// # Safety
///
/// The folios are valid, at most [`DROPS`], and the caller's references go over.
unsafe fn drop_folios(folios: &mut [*mut bindings::folio], tries: u32) {
    let mut rest = keep(folios, |folio| {
        // SAFETY: As promised by the caller.
        unsafe { sentence(folio, tries) }
    });

    while let Some(&mut first) = rest.first_mut() {
        // SAFETY: The folio is locked and in the page cache.
        let mapping = unsafe { bindings::dontcache_mapping(first) };
        let nr = keep(rest, |folio| {
            // SAFETY: As above.
            unsafe { bindings::dontcache_mapping(folio.as_ptr()) == mapping }
        })
        .len();
        let Some((group, others)) = rest.split_at_mut_checked(nr) else {
            return;
        };
        // SAFETY: The folios are locked, to be dropped, and of one mapping.
        let kept = unsafe { bindings::dontcache_remove(group.as_mut_ptr(), nr as c_uint) };

        for folio in group
            .iter()
            .take(kept as usize)
            .filter_map(|f| NonNull::new(*f))
        {
            let state = bindings::DONTCACHE_FOLIO_LOCKED | bindings::DONTCACHE_FOLIO_DIRTY;

            // SAFETY: The reference is still ours.
            unsafe { again(folio, state, tries) };
        }
        rest = others;
    }
}

/// Moves the folios for which `which` is true to the front, and returns them.
fn keep(
    folios: &mut [*mut bindings::folio],
    mut which: impl FnMut(Folio) -> bool,
) -> &mut [*mut bindings::folio] {
    let mut nr = 0usize;

    for at in 0..folios.len() {
        let wanted = folios
            .get(at)
            .and_then(|f| NonNull::new(*f))
            .is_some_and(&mut which);

        if wanted {
            if let Ok([front, this]) = folios.get_disjoint_mut([nr, at]) {
                core::mem::swap(front, this);
            }
            nr = nr.wrapping_add(1);
        }
    }
    folios.get_mut(..nr).unwrap_or_default()
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
