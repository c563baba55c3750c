// SPDX-License-Identifier: GPL-2.0

//! A folio that may have to be dropped: what there is to know about it, and its lock.
//!
//! C header: [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h)

use super::verdict::{
    self,
    State,
    Verdict, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// A folio that lives at least for `'a`.
///
/// # Invariants
///
/// Somebody has a reference to the folio for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Folio<'a>(NonNull<bindings::folio>, PhantomData<&'a ()>);

impl<'a> Folio<'a> {
    /// # Safety
    ///
    /// Somebody has a reference to the folio for `'a`.
    #[inline]
    pub unsafe fn from_raw(folio: NonNull<bindings::folio>) -> Self {
        // INVARIANT: As promised by the caller.
        Self(folio, PhantomData)
    }

    /// The C folio.
    #[inline]
    pub fn as_ptr(self) -> *mut bindings::folio {
        self.0.as_ptr()
    }

    /// Number of the first page frame.
    pub fn pfn(self) -> usize {
        // SAFETY: The folio is valid, by the type invariants.
        unsafe { bindings::folio_pfn(self.as_ptr()) }
    }

    /// Number of pages.
    #[inline]
    pub fn pages(self) -> usize {
        // SAFETY: As above.
        unsafe { bindings::folio_nr_pages(self.as_ptr()) as usize }
    }

    /// Whether it is to be dropped at all.
    pub fn is_dropbehind(self) -> bool {
        self.has(bindings::pageflags_PG_dropbehind)
    }

    /// Whether a folio is marked that may be anybody's, and freed meanwhile.
    ///
    /// Freeing clears the mark, so what is allocated for anything but the page cache has none.
    ///
    /// # Safety
    ///
    /// `folio` is a page of memory that is online.
    pub unsafe fn is_marked(folio: *mut bindings::folio) -> bool {
        // SAFETY: As promised by the caller.
        unsafe { flags_of(folio) & (1 << bindings::pageflags_PG_dropbehind) != 0 }
    }

    /// Whether it is on the LRU: of what is not, the lock may be in the making, or something else.
    pub fn is_lru(self) -> bool {
        self.has(bindings::pageflags_PG_lru)
    }

    /// Whether the end of a writeback is to come.
    pub fn is_to_be_written(self) -> bool {
        self.has(bindings::pageflags_PG_dirty) || self.has(bindings::pageflags_PG_writeback)
    }

    fn flags(self) -> usize {
        // SAFETY: The folio is valid, by the type invariants.
        unsafe { flags_of(self.as_ptr()) }
    }

    fn has(self, flag: bindings::pageflags) -> bool {
        self.flags() & (1 << flag) != 0
    }

    /// Locks the folio if nobody else has.
    #[inline(always)]
    fn try_lock(self) -> Option<Locked<'a>> {
        // SAFETY: The folio is valid, by the type invariants.
        if unsafe { bindings::folio_trylock(self.as_ptr()) } {
            // INVARIANT: It was locked just now.
            Some(Locked(self))
        } else {
            // Not by then_some(): what that is given and does not return it drops, and unlocks.
            None
        }
    }

    /// Locks the folio if nobody else has, and finds out what becomes of it.
    ///
    /// Context: task. Does not sleep.
    #[inline(always)]
    pub fn examine(self) -> (Verdict, Option<Locked<'a>>) {
        let locked = self.try_lock();
        // Further references say nothing: the flusher and fsync() have one to what they have
        // written, and the LRU's per-CPU batches to what is new. Nor does PG_referenced, which
        // folio_mark_accessed() never sets on a folio that is to be dropped.
        //
        // SAFETY: As above.
        let (mapped, pinned) = unsafe {
            (
                bindings::folio_mapped(self.as_ptr()),
                bindings::folio_maybe_dma_pinned(self.as_ptr()),
            )
        };
        let flags = self.flags();
        let has = |flag: bindings::pageflags| flags & (1 << flag) != 0;
        let state = State {
            locked: locked.is_some(),
            gone: self.mapping().is_none() || !has(bindings::pageflags_PG_dropbehind),
            writeback: has(bindings::pageflags_PG_writeback),
            dirty: has(bindings::pageflags_PG_dirty),
            mapped,
            pinned,
        };

        (verdict::decide(state), locked)
    }

    /// The mapping. It lives as long as the folio is locked and in the page cache.
    #[inline]
    pub fn mapping(self) -> Option<NonNull<bindings::address_space>> {
        // SAFETY: The folio is valid. Without its lock the pointer may be old, and is not followed.
        NonNull::new(unsafe {
            (&raw const (*self.as_ptr()).__bindgen_anon_1.__bindgen_anon_1.mapping).read_volatile()
        })
    }
}

/// Its flags. Others set and clear bits meanwhile.
///
/// # Safety
///
/// `folio` is a page of memory that is online.
unsafe fn flags_of(folio: *mut bindings::folio) -> usize {
    // SAFETY: As promised by the caller.
    unsafe { (&raw const (*folio).__bindgen_anon_1.__bindgen_anon_1.flags.f).read_volatile() }
}

/// The lock of a folio.
///
/// # Invariants
///
/// The folio is locked, and its lock is this value's.
#[repr(transparent)]
pub struct Locked<'a>(Folio<'a>);

impl<'a> Locked<'a> {
    /// The folio.
    #[inline]
    pub fn folio(&self) -> Folio<'a> {
        self.0
    }

    /// The mapping, which lives as long as the folio is locked and in the page cache.
    #[inline]
    pub fn mapping(&self) -> Option<NonNull<bindings::address_space>> {
        self.0.mapping()
    }

    /// Whether its filesystem will say once more that its writeback has ended, though it is neither
    /// dirty nor under writeback: as NFS, when its server has committed what it was sent.
    ///
    /// Asks as folio_check_dirty_writeback() of reclaim does. A block device says so of buffers
    /// that somebody has locked, too.
    #[cold]
    pub fn is_to_be_committed(&self) -> bool {
        let (mut dirty, mut writeback) = (false, false);

        if !self.0.has(bindings::pageflags_PG_private) {
            return false;
        }
        // SAFETY: The folio is valid and locked, so its mapping lives, and has operations.
        unsafe {
            if let Some(ask) = self
                .mapping()
                .and_then(|mapping| (*(*mapping.as_ptr()).a_ops).is_dirty_writeback)
            {
                ask(self.0.as_ptr(), &mut dirty, &mut writeback);
            }
        }
        dirty || writeback
    }

    /// Makes of it what an ordinary write leaves in the page cache.
    ///
    /// Not if it was dirtied just now, as a fault may do without the lock: dirty pages are counted
    /// by the mark, under the lock of the page cache, and what is counted with it has to be
    /// discounted with it. Then the end of its writeback decides again.
    #[cold]
    pub fn keep(&self) {
        let Some(mapping) = self.mapping() else {
            return;
        };
        let folio = self.0;

        // What is tagged as dirty, though it no longer is, is counted by the mark as well.
        //
        // SAFETY: The folio is valid and locked, so its mapping lives.
        #[cfg(CONFIG_DONTCACHE_PACED)]
        unsafe {
            bindings::dontcache_unmark(mapping.as_ptr(), folio.as_ptr(), false);
        }

        // SAFETY: As above.
        #[cfg(not(CONFIG_DONTCACHE_PACED))]
        unsafe {
            let pages = &raw mut (*mapping.as_ptr()).i_pages;

            bindings::xa_lock_irq(pages);
            if !folio.has(bindings::pageflags_PG_dirty) {
                bindings::folio_clear_dropbehind(folio.as_ptr());
            }
            bindings::xa_unlock_irq(pages);
        }
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The lock is ours, by the type invariants.
        unsafe { bindings::folio_unlock(self.0.as_ptr()) };
    }
}
