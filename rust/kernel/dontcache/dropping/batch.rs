// SPDX-License-Identifier: GPL-2.0

//! Folios that are dropped from the page cache, together where that is possible.
//!
//! C header: [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)

use super::{
    folio::{
        Folio,
        Locked, //
    },
    retry,
    verdict::Verdict, //
};
use crate::{
    bindings,
    dontcache::{
        count,
        trace, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull,
    slice, //
};

/// How many folios are dropped together; as many as can be freed together.
const FOLIOS: usize = bindings::FOLIO_BATCH_SIZE as usize;

/// How many pages wait for others to be dropped, about: reclaim cannot have them meanwhile.
const PAGES: usize = (2 << 20) / PAGE_SIZE;

// A set of folios is a word.
const _: () = assert!(FOLIOS <= usize::BITS as usize);

/// Drops a folio whose writeback has ended: at once, together with others if the task collects
/// them, or a little later where locks cannot be taken.
///
/// One that was read (`again` is not set) is tried now or not at all: of readers side by side all
/// but one would find it locked, and it gone when they come back.
///
/// Context: any but NMI, a task if `again` is not set. Does not sleep.
///
/// # Safety
///
/// The caller has a reference to `folio`.
#[inline]
pub unsafe fn end_writeback(folio: NonNull<bindings::folio>, again: bool) {
    // SAFETY: As promised by the caller.
    let folio = unsafe { Folio::from_raw(folio) };

    if !again {
        fails(folio);
        return;
    }

    // SAFETY: Always safe to call.
    if !unsafe { bindings::in_task() } {
        retry::later(folio);
        return;
    }

    // SAFETY: The current task is valid, and the field its own.
    match NonNull::new(unsafe { (*bindings::get_current()).dontcache_batch }) {
        // SAFETY: It points to a batch until the task takes it back, and is used by nobody else:
        // what drops its folios ends no writeback in this task, since it neither sleeps nor
        // submits.
        Some(mut batch) => unsafe { add(batch.as_mut(), folio) },
        None => drop_alone(folio),
    }
}

/// Drops a folio that is in no batch.
#[inline(never)]
fn drop_alone(folio: Folio<'_>) {
    if written_fails(folio) {
        retry::later(folio);
    }
}

/// Adds a folio to a batch, whose folios are dropped before that if they are enough: this one may
/// be locked until the caller is done, by a driver that completes what is being submitted.
///
/// # Safety
///
/// The first `nr` folios of the batch are valid, and it owns a reference to each.
#[inline]
unsafe fn add(batch: &mut bindings::dontcache_batch, folio: Folio<'_>) {
    if usize::from(batch.folios.nr) >= FOLIOS || batch.pages >= PAGES {
        // SAFETY: As promised by the caller.
        unsafe { add_alone(batch, folio) };
    } else {
        push(batch, folio);
    }
}

/// As [`add`], once what the batch has is dropped.
///
/// # Safety
///
/// As for [`add`].
#[cold]
#[inline(never)]
unsafe fn add_alone(batch: &mut bindings::dontcache_batch, folio: Folio<'_>) {
    // SAFETY: As promised by the caller.
    unsafe { drop_batch(batch) };
    push(batch, folio);
}

/// Gives a folio to a batch with room, which gets a reference to it.
#[inline]
fn push(batch: &mut bindings::dontcache_batch, folio: Folio<'_>) {
    if let Some(at) = batch.folios.folios.get_mut(usize::from(batch.folios.nr)) {
        *at = folio.as_ptr();
        batch.folios.nr = batch.folios.nr.wrapping_add(1);
        batch.pages = batch.pages.wrapping_add(folio.pages());
        // SAFETY: The folio is valid.
        unsafe { bindings::folio_get(folio.as_ptr()) };
    }
}

/// Drops the folios of a batch, and leaves it empty.
///
/// Context: task. Does not sleep: who holds a folio's lock is not waited for.
///
/// # Safety
///
/// The first `nr` folios of the batch are valid, and it owns a reference to each.
pub unsafe fn drop_batch(batch: &mut bindings::dontcache_batch) {
    let nr = core::mem::take(&mut batch.folios.nr);

    batch.pages = 0;
    if nr != 1 {
        let mut left = usize::from(nr);

        // Mostly once: they are of one mapping.
        while let Some(folios @ [_, ..]) = batch.folios.folios.get_mut(..left) {
            // SAFETY: As promised by the caller.
            left = unsafe { drop_group(folios) };
        }
        return;
    }

    // As most often, where bios have a large folio each: what follows would cost more than it
    // saves.
    let [folio, ..] = batch.folios.folios;
    // SAFETY: The batch owned a reference to it, which is put below.
    let folio = unsafe { Folio::from_raw(NonNull::new_unchecked(folio)) };

    drop_alone(folio);
    // SAFETY: The reference is ours.
    unsafe { bindings::folio_put(folio.as_ptr()) };
}

/// Drops those of `folios` that have the mapping of the first that can be dropped, as far as they
/// still can: truncation may have them meanwhile. Those before it are put, and tried again if need
/// be. Returns how many others there are, which are in front then, in their order.
///
/// Only of that mapping are the locks that are held: who waits for one of its folios waits for no
/// other inode's.
///
/// # Safety
///
/// There are at most `FOLIOS`. They are valid, and there is a reference to each, which goes over
/// but for those that are in front afterwards.
unsafe fn drop_group(folios: &mut [*mut bindings::folio]) -> usize {
    // Those that are locked, where they can be freed.
    let mut batch = MaybeUninit::<bindings::folio_batch>::uninit();
    // CAST: `Locked` is a transparent type over a pointer to a folio.
    // SAFETY: It is in bounds, and no reference is made to what is not there yet.
    let locks = unsafe { &raw mut (*batch.as_mut_ptr()).folios }.cast::<Locked<'_>>();
    let mut mapping = None;
    let mut nr = 0usize;
    let mut left = 0usize;

    for at in 0..folios.len().min(FOLIOS) {
        let Some(&folio) = folios.get(at) else {
            break;
        };
        // SAFETY: There is a reference, which is put here or below.
        let folio = unsafe { Folio::from_raw(NonNull::new_unchecked(folio)) };

        if mapping.is_some() && folio.mapping() != mapping {
            if let Some(to) = folios.get_mut(left) {
                *to = folio.as_ptr();
                left = left.wrapping_add(1);
            }
            continue;
        }

        let fails = match to_drop(folio) {
            Ok(lock) if mapping.is_none() || lock.mapping() == mapping => {
                mapping = lock.mapping();
                // SAFETY: There is room for `FOLIOS` of them, and `nr` is at most `at`.
                unsafe { locks.add(nr).write(lock) };
                nr = nr.wrapping_add(1);
                continue;
            }
            Ok(_) => true,
            Err(fails) => fails,
        };

        if fails {
            retry::later(folio);
        }
        // SAFETY: The reference is ours.
        unsafe { bindings::folio_put(folio.as_ptr()) };
    }

    // SAFETY: So many were written above, and none is while there is this slice.
    let mut gone = remove_written(unsafe { slice::from_raw_parts(locks, nr) });
    let mut refs = [const { MaybeUninit::<c_uint>::uninit() }; FOLIOS];
    let mut freed = 0usize;
    let mut all = 0usize;

    for at in 0..nr {
        // SAFETY: As above, and each is read once.
        let lock = unsafe { locks.add(at).read() };
        let folio = lock.folio();

        // Unlocked before somebody else can get hold of the last reference.
        core::mem::drop(lock);
        if gone & 1 == 0 {
            retry::later(folio);
            // SAFETY: The reference is ours.
            unsafe { bindings::folio_put(folio.as_ptr()) };
        } else if let Some(refs) = refs.get_mut(freed) {
            let pages = folio.pages();

            refs.write((pages as c_uint).wrapping_add(1));
            // SAFETY: What was there has been read.
            unsafe { locks.add(freed).cast::<Folio<'_>>().write(folio) };
            all = all.wrapping_add(pages);
            freed = freed.wrapping_add(1);
        }
        gone >>= 1;
    }
    if freed > 0 {
        count(bindings::vm_event_item_DONTCACHE_DROP, all);
        // CAST: `MaybeUninit` has the layout of what is in it.
        // SAFETY: So many folios and numbers were written, and these are the other fields. The
        // references were the page cache's, and our own.
        unsafe {
            let batch = batch.as_mut_ptr();

            (*batch).nr = freed as u8;
            (*batch).i = 0;
            (*batch).percpu_pvec_drained = false;
            bindings::folios_put_refs(batch, refs.as_mut_ptr().cast());
        }
    }
    left
}

/// Tries to drop a folio; returns whether it is to be tried again.
#[inline(never)]
pub fn fails(folio: Folio<'_>) -> bool {
    fails_then(folio, remove, |_| ())
}

/// As [`fails`], for a folio whose writeback has ended just now.
#[inline]
fn written_fails(folio: Folio<'_>) -> bool {
    fails_then(folio, remove_written, |_| ())
}

/// As [`fails`] for the last time; gives the folio to `refused`, locked still, if its filesystem
/// does not release it or somebody dirtied it just now.
pub(super) fn fails_finally(folio: Folio<'_>, refused: impl FnOnce(&Locked<'_>)) -> bool {
    fails_then(folio, remove, refused)
}

#[inline]
fn fails_then(
    folio: Folio<'_>,
    remove: impl FnOnce(&[Locked<'_>]) -> usize,
    refused: impl FnOnce(&Locked<'_>),
) -> bool {
    let locked = match to_drop(folio) {
        Ok(locked) => locked,
        Err(fails) => return fails,
    };

    if remove(slice::from_ref(&locked)) == 0 {
        refused(&locked);
        return true;
    }
    count(bindings::vm_event_item_DONTCACHE_DROP, folio.pages());
    // SAFETY: These references were the page cache's. Somebody else has one.
    unsafe { bindings::folio_put_refs(folio.as_ptr(), folio.pages() as c_int) };
    false
}

/// Locks a folio that can be dropped, or says whether it is to be tried again.
#[inline(always)]
fn to_drop(folio: Folio<'_>) -> Result<Locked<'_>, bool> {
    match folio.examine() {
        (Verdict::Drop, Some(locked)) => Ok(locked),
        (verdict, locked) => Err(stays(verdict, locked)),
    }
}

/// What becomes of a folio that is not dropped now; returns whether it is to be tried again.
#[cold]
fn stays(verdict: Verdict, locked: Option<Locked<'_>>) -> bool {
    let event = match verdict {
        Verdict::Drop | Verdict::Nothing => return false,
        Verdict::Retry => return true,
        Verdict::Mapped => bindings::vm_event_item_DONTCACHE_MAPPED,
        Verdict::Pinned => bindings::vm_event_item_DONTCACHE_PINNED,
    };

    if let Some(locked) = locked {
        locked.keep();
    }
    count(event, 1);
    false
}

/// As [`remove`], of folios whose writeback has ended just now: what paces writers is told how many
/// pages they have.
#[cfg(CONFIG_DONTCACHE_PACED)]
#[inline]
fn remove_written(group: &[Locked<'_>]) -> usize {
    use crate::dontcache::writeback::wb;

    let to_be_told = group
        .first()
        .and_then(Locked::mapping)
        // SAFETY: The mapping lives as long as its folios are locked and in the page cache.
        .and_then(|folios| unsafe { wb::to_be_told(folios.as_ptr()) });
    let gone = remove(group);

    // All are written, whether they go or not.
    if let Some(to_be_told) = to_be_told {
        to_be_told.tell(group.iter().map(|locked| locked.folio().pages()).sum());
    }
    gone
}

#[cfg(not(CONFIG_DONTCACHE_PACED))]
use remove as remove_written;

/// Takes folios of one mapping out of the page cache; returns which, as a set of their indices.
///
/// The references of the page cache to those that went go over to the caller. The others were
/// dirtied, or are still of use to their filesystem. The mapping may be gone when this returns.
#[inline]
fn remove(group: &[Locked<'_>]) -> usize {
    let Some(mapping) = group.first().and_then(Locked::mapping) else {
        return 0;
    };

    // CAST: `Locked` is a transparent type over `NonNull`.
    // SAFETY: The mapping lives as long as its folios are locked and in the page cache. They are
    // locked, clean and not mapped.
    unsafe {
        trace::dontcache_drop(mapping.as_ptr(), group.len() as c_uint);
        bindings::folios_remove_clean(
            mapping.as_ptr(),
            group.as_ptr().cast(),
            group.len() as c_uint,
            0,
        )
    }
}
