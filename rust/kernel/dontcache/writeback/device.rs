// SPDX-License-Identifier: GPL-2.0

//! What paces the uncached writes of all cgroups to a device: a `backing_dev_info`.

use super::{
    dirty::{
        Dirty,
        MOST_GOOD, //
    },
    policy::Policy,
    units::Pages, //
};
use crate::{
    alloc::AllocError,
    bindings,
    list::{
        List,
        ListArc, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        new_spinlock,
        Arc,
        LockedBy,
        SpinLock, //
    }, //
};

/// The number of no policy.
const NONE: u32 = u32::MAX;

/// What Rust knows of a device. Its `bdi_writeback`s and mappings keep it.
#[pin_data]
pub(super) struct Device {
    /// The lock of all lists of mappings, and how many are on one. One for all, since a mapping
    /// goes from one wb to another.
    #[pin]
    pub(super) lists: SpinLock<Listed>,
    /// What a bound is at most, in pages: `usize::MAX` if nobody said.
    pub(super) most: Atomic<usize>,
    /// What its queue takes, in pages: `usize::MAX` if it has none, or nobody has looked.
    queue: Atomic<usize>,
    policy: Atomic<u32>,
}

/// How many mappings are on a list of a device.
pub(super) struct Listed(pub(super) usize);

/// The mappings that wait for the worker of a `bdi_writeback`, in the order in which they came.
pub(super) struct Mappings(LockedBy<Inner, Listed>);

#[derive(Default)]
struct Queue {
    list: List<Dirty>,
    len: usize,
}

struct Inner {
    /// Those that can be written.
    live: Queue,
    /// Those that could not, when that was tried: of file systems that are frozen, or unmounted.
    frozen: Queue,
}

impl Inner {
    fn queue(&mut self, frozen: bool) -> &mut Queue {
        if frozen {
            &mut self.frozen
        } else {
            &mut self.live
        }
    }
}

impl Mappings {
    pub(super) fn new(device: &Device) -> Self {
        Self(LockedBy::new(
            &device.lists,
            Inner {
                live: Queue::default(),
                frozen: Queue::default(),
            },
        ))
    }

    pub(super) fn len(&self, listed: &mut Listed, frozen: bool) -> usize {
        self.0.access_mut(listed).queue(frozen).len
    }

    pub(super) fn push(&self, listed: &mut Listed, frozen: bool, link: ListArc<Dirty>) {
        listed.0 += 1;

        let queue = self.0.access_mut(listed).queue(frozen);

        queue.list.push_back(link);
        queue.len += 1;
    }

    pub(super) fn pop(&self, listed: &mut Listed, frozen: bool) -> Option<ListArc<Dirty>> {
        let queue = self.0.access_mut(listed).queue(frozen);
        let first = queue.list.pop_front()?;

        queue.len -= 1;
        listed.0 -= 1;
        Some(first)
    }

    /// Takes a mapping off the list, if it is there.
    ///
    /// # Safety
    ///
    /// It is on no other list.
    pub(super) unsafe fn remove(
        &self,
        listed: &mut Listed,
        frozen: bool,
        dirty: &Dirty,
    ) -> Option<ListArc<Dirty>> {
        let queue = self.0.access_mut(listed).queue(frozen);
        // SAFETY: As promised by the caller.
        let removed = unsafe { queue.list.remove(dirty) }?;

        queue.len -= 1;
        listed.0 -= 1;
        Some(removed)
    }
}

impl Device {
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        Arc::pin_init(
            pin_init!(Self {
                lists <- new_spinlock!(Listed(0), "dontcache_lists"),
                most: Atomic::new(usize::MAX),
                queue: Atomic::new(usize::MAX),
                policy: Atomic::new(NONE),
            }),
            GFP_KERNEL,
        )
        .map_err(|_| AllocError)
    }

    /// What its queue takes, and a good request at least: it may end as one.
    #[inline]
    pub(super) fn queue(&self) -> Pages {
        Pages(self.queue.load(Relaxed)).max(MOST_GOOD)
    }

    #[inline]
    pub(super) fn set_queue(&self, pages: Option<usize>) {
        // All writers read it.
        if let Some(pages) = pages.filter(|&pages| self.queue.load(Relaxed) != pages) {
            self.queue.store(pages, Relaxed);
        }
    }

    /// The policy of the device, if it has one of its own.
    pub(super) fn policy(&self) -> Option<Policy> {
        match self.policy.load(Relaxed) {
            NONE => None,
            number => Some(Policy::from_number(number)),
        }
    }

    pub(super) fn set_policy(&self, policy: Option<Policy>) {
        self.policy
            .store(policy.map_or(NONE, |policy| policy as u32), Relaxed);
    }
}

/// What the queue of the device of a mapping takes, in pages, if it has one, and is there still.
///
/// # Safety
///
/// The file of the mapping is open.
#[inline]
pub(super) unsafe fn queue_pages(mapping: *mut bindings::address_space) -> Option<usize> {
    // SAFETY: As promised by the caller.
    let (bdev, pages) = unsafe {
        (
            bindings::dontcache_bdev(mapping),
            bindings::dontcache_io_pages(mapping),
        )
    };

    if bdev.is_null() {
        return None;
    }
    // SAFETY: As promised by the caller.
    let tags = unsafe { bindings::dontcache_tags(bdev) };

    // What is submitted at once is no more.
    (tags > 0).then(|| tags.saturating_mul(pages.min(MOST_GOOD.0)))
}

/// How many requests the device of a mapping has, of all who use it.
///
/// # Safety
///
/// The file of the mapping is open.
pub(super) unsafe fn requests(mapping: *mut bindings::address_space) -> usize {
    // SAFETY: As promised by the caller.
    let bdev = unsafe { bindings::dontcache_bdev(mapping) };

    if bdev.is_null() {
        return 0;
    }
    // SAFETY: As above.
    unsafe { bindings::dontcache_inflight(bdev) as usize }
}
