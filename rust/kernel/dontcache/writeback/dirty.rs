// SPDX-License-Identifier: GPL-2.0

//! What Rust remembers of a mapping that uncached writes have left dirty.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::{
    device::{
        self,
        Device,
        Listed, //
    },
    pending::{
        Next,
        Pending,
        Range, //
    },
    units::Pages,
    wb::{
        self,
        jiffies,
        Wb,
        GATHER,
        TAIL, //
    }, //
};
use crate::{
    bindings,
    dontcache::{
        count,
        trace, //
    },
    error::to_result,
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListArc,
        ListLinks,
        TryNewListArc, //
    },
    page::PAGE_SHIFT,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        new_spinlock,
        Arc,
        LockedBy,
        SpinLock, //
    }, //
};
use core::ptr;

/// What is pending in a mapping, and its place on the list of a worker.
///
/// # Invariants
///
/// - `mapping` is the one whose `dontcache` points here, or null. It becomes null with the lock of
///   the lists of `device` held.
/// - It is on a list of `home` or on none, and `home` is of `device`. Which of the two, `frozen`
///   says, that is only set with that lock held too.
#[pin_data]
pub struct Dirty {
    mapping: Atomic<*mut bindings::address_space>,
    device: Arc<Device>,
    home: LockedBy<Arc<Wb>, Listed>,
    frozen: Atomic<bool>,
    good: Pages,
    /// The last error of its writeback that a writer was told, or that was there before.
    told: Atomic<u32>,
    #[pin]
    pending: SpinLock<Pending>,
    #[pin]
    links: ListLinks,
    #[pin]
    tracker: AtomicTracker,
}

// The macro's own.
#[allow(clippy::undocumented_unsafe_blocks)]
const _: () = {
    impl_list_arc_safe! {
        impl ListArcSafe<0> for Dirty {
            tracked_by tracker: AtomicTracker;
        }
    }
};

impl_list_item! {
    impl ListItem<0> for Dirty { using ListLinks { self.links }; }
}

/// A request is good if it has the size of the device's largest, between 128 KiB and 1 MiB.
const LEAST_GOOD: Pages = Pages((128 << 10) >> PAGE_SHIFT);
pub(super) const MOST_GOOD: Pages = Pages((1 << 20) >> PAGE_SHIFT);

/// A server is asked to commit what is written as one, which may be a flush of its disk.
const SERVER_GOOD: Pages = Pages((4 << 20) >> PAGE_SHIFT);

/// Whether fsync() has seen the last error of a mapping: `ERRSEQ_SEEN` of lib/errseq.c.
const SEEN: u32 = 1 << 12;

/// The errors of the writeback of a mapping so far, the last in its low bits, and whether fsync()
/// has told one. They stay there for fsync(), and for who opens the file next.
///
/// # Safety
///
/// The mapping lives.
unsafe fn errors(mapping: *mut bindings::address_space) -> u32 {
    // SAFETY: As promised by the caller. Others set it meanwhile.
    unsafe { (&raw const (*mapping).wb_err).read_volatile() }
}

/// Where a mapping remembers it.
///
/// # Safety
///
/// The mapping lives for `'a`.
#[inline]
unsafe fn word<'a>(mapping: *mut bindings::address_space) -> &'a Atomic<*mut c_void> {
    // SAFETY: As promised by the caller; it is only accessed atomically.
    unsafe { Atomic::from_ptr(&raw mut (*mapping).dontcache) }
}

/// What a mapping remembers.
///
/// # Safety
///
/// The mapping lives and is not being evicted for `'a`.
#[inline]
unsafe fn of<'a>(mapping: *mut bindings::address_space) -> Option<&'a Dirty> {
    // SAFETY: As promised by the caller: what is there stays until then.
    unsafe { word(mapping).load(Relaxed).cast::<Dirty>().as_ref() }
}

/// Lets a mapping remember.
///
/// # Safety
///
/// As for [`of`].
#[cold]
unsafe fn make<'a>(mapping: *mut bindings::address_space, nowait: bool) -> Option<&'a Dirty> {
    // SAFETY: As promised by the caller.
    let (wb, block, good, queue, told) = unsafe {
        (
            wb::of(mapping)?,
            bindings::mapping_min_folio_order(mapping),
            bindings::dontcache_io_pages(mapping),
            device::queue_pages(mapping),
            errors(mapping) & !SEEN,
        )
    };
    let device = wb.device().clone();
    // SAFETY: As promised by the caller.
    let good = if unsafe { is_on_disk(mapping) } {
        Pages(good).clamp(LEAST_GOOD, MOST_GOOD)
    } else {
        SERVER_GOOD
    };

    device.set_queue(queue);

    let home = LockedBy::new(&device.lists, wb);
    let new = Arc::pin_init(
        pin_init!(Dirty {
            mapping: Atomic::new(mapping),
            device,
            home,
            frozen: Atomic::new(false),
            good,
            told: Atomic::new(told),
            pending <- new_spinlock!(Pending::new(block), "dontcache_pending"),
            links <- ListLinks::new(),
            tracker <- AtomicTracker::new(),
        }),
        // As the inode's own memory: it is the cgroup's of who writes.
        if nowait {
            GFP_NOWAIT | (GFP_KERNEL_ACCOUNT & !GFP_KERNEL)
        } else {
            GFP_KERNEL_ACCOUNT
        },
    )
    .ok()?;
    let new = Arc::into_raw(new);

    // SAFETY: As promised by the caller. Who loses gives up what nobody else has seen.
    unsafe {
        if word(mapping)
            .cmpxchg(ptr::null_mut(), new.cast_mut().cast(), Full)
            .is_err()
        {
            drop(Arc::from_raw(new));
        }
        of(mapping)
    }
}

/// Follows a write of the bytes from `first` to before `end`: starts writeback of what is good to
/// be written, leaves the rest to a worker, and waits while there is too much.
///
/// # Safety
///
/// The file of the mapping is open, and no locks are held.
#[inline]
pub(super) unsafe fn wrote(
    mapping: *mut bindings::address_space,
    first: usize,
    end: usize,
    nowait: bool,
) {
    // SAFETY: As promised by the caller.
    let Some(dirty) = (unsafe { of(mapping).or_else(|| make(mapping, nowait)) }) else {
        let range = Range {
            first: first >> PAGE_SHIFT,
            end: (end >> PAGE_SHIFT) + 1,
        };

        // Without memory to remember it.
        //
        // SAFETY: As promised by the caller.
        unsafe {
            if nowait {
                bindings::filemap_dontcache_kick_writeback(mapping);
            } else {
                write(mapping, range);
            }
        }
        return;
    };
    let mut pending = dirty.pending.lock();
    let now = jiffies();
    let next = pending.wrote(first, end, now, dirty.good, nowait, PAGE_SHIFT as u32);
    let left = !pending.is_empty();
    let touched = Pages((end - first).div_ceil(1 << PAGE_SHIFT));
    let turn = pending.turn(touched, dirty.good).0;
    let submits = pending.submits(touched, dirty.good);
    let credit = pending.spend(touched, now, wb::PROMISED);

    drop(pending);
    match next {
        Next::Write(range) => {
            // SAFETY: As promised by the caller.
            if unsafe { dirty.write(mapping, range) }.1 || left {
                // SAFETY: As above.
                unsafe { dirty.add(mapping, false) };
            }
        }
        // SAFETY: As above.
        Next::Worker | Next::Gather => unsafe { dirty.add(mapping, next == Next::Worker) },
    }

    if !credit {
        // SAFETY: As promised by the caller.
        let granted = unsafe { wb::pace(mapping, turn, submits, nowait) };

        if granted > 0 {
            dirty.pending.lock().grant(Pages(granted), jiffies());
        }
    }
}

/// Whether an earlier write could not be written to the device, which nobody was told.
///
/// # Safety
///
/// The file of the mapping is open.
///
/// # Errors
///
/// That of the write, once: who does not call fsync() would write on and on.
#[inline]
pub(super) unsafe fn failed(mapping: *mut bindings::address_space) -> Result {
    // SAFETY: As promised by the caller.
    let Some(dirty) = (unsafe { of(mapping) }) else {
        return Ok(());
    };
    let is_told = |errors: u32| dirty.told.load(Relaxed) == errors & !SEEN;
    // SAFETY: As above.
    if is_told(unsafe { errors(mapping) }) {
        return Ok(());
    }
    // Of those that write side by side, one. With the lock it looks at what there is now: an older
    // error would take the place of one that another was told, and that one be told again.
    let lock = dirty.pending.lock();
    // SAFETY: As above.
    let errors = unsafe { errors(mapping) };

    if is_told(errors) {
        return Ok(());
    }
    dirty.told.store(errors & !SEEN, Relaxed);
    drop(lock);
    if errors & SEEN != 0 {
        return Ok(());
    }
    to_result(-((errors & bindings::MAX_ERRNO) as c_int))
}

/// Whether a writer of so many `bytes` that may not wait has to.
///
/// # Safety
///
/// The file of the mapping is open.
pub(super) unsafe fn must_wait(mapping: *mut bindings::address_space, bytes: usize) -> bool {
    // SAFETY: As promised by the caller.
    unsafe {
        let good = of(mapping).map_or(LEAST_GOOD, |dirty| dirty.good).0;
        let pages = bytes >> PAGE_SHIFT;

        wb::must_wait(mapping, good.max(pages), pages >= good)
    }
}

impl Dirty {
    /// Sees to it that a worker writes what is pending: soon, or when it has gathered.
    ///
    /// # Safety
    ///
    /// The file of the mapping, which is this one's, is open.
    unsafe fn add(&self, mapping: *mut bindings::address_space, soon: bool) {
        // SAFETY: It came from `Arc::into_raw()`, and one reference is the mapping's.
        let ours = unsafe { Arc::from_raw(self) };
        let link = ListArc::try_from_arc(ours.clone());

        let _ = Arc::into_raw(ours);
        match link {
            Ok(link) => {
                // SAFETY: As promised by the caller.
                let now = unsafe { wb::of(mapping) };

                // Another cgroup's since, perhaps.
                now.filter(|wb| Arc::ptr_eq(wb.device(), &self.device))
                    .unwrap_or_else(|| self.home())
                    .add(link, soon);
            }
            Err(_) => {
                if self.frozen.load(Relaxed) {
                    let mut lists = self.device.lists.lock();
                    let home = self.home.access_mut(&mut lists).clone();

                    home.thaw(&mut lists, self);
                }
                if soon {
                    self.home().hurry();
                }
            }
        }
    }

    /// Whose list it is on, or was.
    fn home(&self) -> Arc<Wb> {
        let mut lists = self.device.lists.lock();

        self.home.access_mut(&mut lists).clone()
    }

    /// With the lock of the lists held. Returns what it was before, to be dropped without.
    pub(super) fn set_home(&self, lists: &mut Listed, home: Arc<Wb>, frozen: bool) -> Arc<Wb> {
        self.frozen.store(frozen, Relaxed);
        core::mem::replace(self.home.access_mut(lists), home)
    }

    /// Starts writeback of `range`; returns of how many pages, and whether some of it is to be
    /// written once more: large folios are under writeback as a whole, and some cannot be written
    /// now.
    ///
    /// # Safety
    ///
    /// The inode of the mapping, which is this one's, stays.
    unsafe fn write(&self, mapping: *mut bindings::address_space, range: Range) -> (usize, bool) {
        // SAFETY: As promised by the caller.
        let ((started, cut), dirty, busy) = unsafe {
            (
                write(mapping, range),
                first_dirty(mapping, range.first, range.end).is_some(),
                bindings::dontcache_mapping_busy(mapping),
            )
        };

        let again = dirty && self.pending.lock().again(range, jiffies(), busy, cut);

        (started, again)
    }

    /// The mapping, and with it its inode and file system, until the result goes.
    ///
    /// With the lock of the lists held.
    pub(super) fn pin(&self) -> Option<Pinned<'_>> {
        let mapping = self.mapping.load(Relaxed);

        if mapping.is_null() {
            return None;
        }
        // Not then_some(): to drop what was not pinned would unpin it.
        //
        // SAFETY: With the lock it cannot become null, so its inode is not freed meanwhile.
        unsafe { bindings::dontcache_pin(mapping) }.then(|| Pinned {
            dirty: self,
            mapping,
        })
    }

    /// Of the two lists of its home, whether it is the other that it is on. With the lock of the
    /// lists held.
    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.load(Relaxed)
    }

    /// With the lock of the lists held.
    pub(super) fn is_forgotten(&self) -> bool {
        self.mapping.load(Relaxed).is_null()
    }

    /// Takes it off its list, and says that its mapping goes.
    fn forget(&self) {
        let mut lists = self.device.lists.lock();

        self.mapping.store(ptr::null_mut(), Relaxed);

        let home = self.home.access_mut(&mut lists).clone();
        let frozen = self.frozen.load(Relaxed);
        // SAFETY: By the type invariants.
        let removed = unsafe { home.forget(&mut lists, frozen, self) };

        drop(lists);
        drop(removed);
    }
}

/// Lets a mapping forget.
///
/// # Safety
///
/// It is being evicted.
pub unsafe fn forget(mapping: *mut bindings::address_space) {
    // SAFETY: As promised by the caller.
    let dirty = unsafe { word(mapping) }.load(Relaxed).cast::<Dirty>();

    if dirty.is_null() {
        return;
    }
    // SAFETY: As above, and it came from `Arc::into_raw()`.
    unsafe {
        word(mapping).store(ptr::null_mut(), Relaxed);
        Arc::from_raw(dirty).forget();
    }
}

/// A mapping whose inode and file system stay.
pub(super) struct Pinned<'a> {
    dirty: &'a Dirty,
    mapping: *mut bindings::address_space,
}

impl Pinned<'_> {
    /// Writes what is pending, and returns how many pages. What is left has come just now, or is
    /// the tail of a stream, and a worker comes for it.
    pub(super) fn write(&self, gather: usize, tail: usize) -> usize {
        let mut pending = self.dirty.pending.lock();
        let range = pending.take(jiffies(), gather, GATHER, tail, PAGE_SHIFT as u32);
        let left = !pending.is_empty();

        drop(pending);
        // SAFETY: The inode stays.
        unsafe {
            let (started, again) =
                range.map_or((0, false), |range| self.dirty.write(self.mapping, range));

            if again || left {
                self.dirty.add(self.mapping, false);
            }
            started
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: The other half of `dontcache_pin()`.
        unsafe { bindings::dontcache_unpin(self.mapping) };
    }
}

/// The first of these pages that is dirty.
///
/// # Safety
///
/// The inode of the mapping stays.
unsafe fn first_dirty(
    mapping: *mut bindings::address_space,
    mut first: usize,
    end: usize,
) -> Option<usize> {
    // SAFETY: As promised by the caller.
    (first < end && unsafe { bindings::dontcache_dirty_in(mapping, &mut first, end - 1) })
        .then_some(first)
}

/// Whether a mapping is of a block device, or of a filesystem on one.
///
/// # Safety
///
/// The inode of the mapping stays.
unsafe fn is_on_disk(mapping: *mut bindings::address_space) -> bool {
    // SAFETY: As promised by the caller. What is set is set before the first inode.
    unsafe {
        let sb = (*(*mapping).host).i_sb;

        !(*sb).s_bdev.is_null() || ptr::eq(sb, bindings::blockdev_superblock)
    }
}

/// Starts writeback of `range`; returns of how many pages, and whether that is cut short, since it
/// takes long.
///
/// Piece by piece: filesystems end the writeback of what they submit as one when the last of it is
/// on the device, and those who wait would go on all at once, with nothing under way. Not what a
/// server has, which would be asked to commit each. No page is visited twice: one that its
/// filesystem has put off is dirty still (data in a journal).
///
/// # Safety
///
/// The inode of the mapping stays.
unsafe fn write(mapping: *mut bindings::address_space, range: Range) -> (usize, bool) {
    let last = ((range.end << PAGE_SHIFT) as i64).wrapping_sub(1);
    // SAFETY: As promised by the caller.
    let alone = unsafe { wb::starting(mapping) };
    // SAFETY: As promised by the caller.
    let most = if unsafe { is_on_disk(mapping) } {
        MOST_GOOD.0
    } else {
        usize::MAX >> 1
    };
    let (mut at, mut started, mut cut) = (Some(range.first), 0, false);
    let since = jiffies();

    while let Some(first) = at {
        // Whoever dirties it meanwhile does not keep this, and what it has pinned, for long.
        if jiffies().wrapping_sub(since) > TAIL {
            cut = true;
            break;
        }
        // SAFETY: As promised by the caller.
        let piece = unsafe {
            bindings::filemap_dontcache_writeback(
                mapping,
                (first << PAGE_SHIFT) as i64,
                last,
                most as c_long,
            )
        };
        // A file system may count what it was not asked for.
        let piece = usize::try_from(piece).unwrap_or(0);

        started += piece;
        if piece < most {
            break;
        }
        // That was all that is dirty in so many pages from `first` on, at least.
        //
        // SAFETY: As promised by the caller.
        at = unsafe { first_dirty(mapping, first.saturating_add(most), range.end) };
    }
    if let Some(wb) = alone.filter(|_| started == 0) {
        wb.started_nothing();
    }
    // SAFETY: As promised by the caller.
    unsafe {
        wb::started(mapping, started);
        trace::dontcache_piece(mapping, range.first, range.end, started);
    }
    count(bindings::vm_event_item_DONTCACHE_START, started);
    (started, cut)
}
