// SPDX-License-Identifier: GPL-2.0

//! What paces the uncached writes to a device and of a cgroup: a `bdi_writeback`.
//!
//! C header: [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use super::{
    control::{
        self,
        Control,
        LATE, //
    },
    device::{
        self,
        Device,
        Listed,
        Mappings, //
    },
    dirty::{
        Dirty,
        MOST_GOOD, //
    },
    policy::Policy,
    report::Report,
    room::{
        self,
        Advice,
        Footprint,
        Seen, //
    },
    units::{
        Instant,
        Micros,
        Pages, //
    },
    waiters::{
        Waiter,
        Waiters, //
    }, //
};
use crate::{
    alloc::{
        AllocError,
        Flags, //
    },
    bindings,
    dontcache::trace,
    list::ListArc,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        barrier,
        new_spinlock,
        Arc,
        SpinLock, //
    },
    warn_on,
    workqueue::{
        impl_has_delayed_work,
        impl_has_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Queue,
        Work,
        WorkItem, //
    }, //
};
use core::ptr;

/// How long a device is to have something to do: the sysctl `vm.dontcache_ms`.
fn span() -> Micros {
    // SAFETY: It is always there. Somebody may set it meanwhile.
    let ms = unsafe { (&raw const bindings::dontcache_ms).read_volatile() };

    Micros::from_millis(ms as usize)
}

/// The jiffies of a second. Not `bindings::HZ`: bindgen takes the first of two definitions, which
/// is that of user space, 100.
const HZ: usize = bindings::CONFIG_HZ as usize;

/// How many jiffies what is small gathers.
pub(super) const GATHER: usize = HZ.div_ceil(50);

/// How many jiffies later what could not be written is tried again.
const SELDOM: usize = HZ;

/// How many jiffies the page at the end of a stream waits for its rest.
pub(super) const TAIL: usize = TENTH;

/// A tenth of a second.
pub(super) const TENTH: usize = HZ.div_ceil(10);

/// How many jiffies a writer waits at most before it looks for itself.
const LOOK: usize = HZ.div_ceil(100);

/// How many jiffies after one that is alone a request is measured again.
const SAMPLE: usize = GATHER;

/// How long nobody is late who was let go by who looks.
const NOT_LATE: Micros = Micros::from_millis(1000);

/// How many wait before those behind the first look seldom.
const MANY: usize = 16;

/// How many jiffies who was granted its turn may take to run.
pub(super) const PROMISED: usize = 3 * LOOK;

/// Its uncached pages that are dirty or under writeback, and those that are under writeback.
pub(super) const ALL: bindings::wb_stat_item = bindings::wb_stat_item_WB_DONTCACHE;
pub(super) const WRITEBACK: bindings::wb_stat_item = bindings::wb_stat_item_WB_DONTCACHE_WRITEBACK;

pub(super) fn jiffies() -> usize {
    // SAFETY: It is always there. The timer's interrupt sets it meanwhile.
    unsafe { (&raw const bindings::jiffies).read_volatile() }
}

/// How many pages CPUs may have counted for a wb, and not added up.
fn error() -> usize {
    // SAFETY: Always safe to call.
    unsafe { bindings::dontcache_wb_error() }
}

fn now() -> Instant {
    // SAFETY: Always safe to call.
    Instant(unsafe { bindings::ktime_get() } as usize / 1000)
}

/// What Rust knows of a `bdi_writeback`, and its worker: one that is slow holds up no other
/// cgroup's.
#[pin_data]
pub struct Wb {
    device: Arc<Device>,
    #[pin]
    queue: SpinLock<Waiters>,
    /// What the device writes in the time that it is to have something to do, in pages: 0 if that
    /// is not known.
    target: Atomic<usize>,
    /// What is to be under writeback beside what its queue takes, in pages.
    ahead: Atomic<usize>,
    pub(super) report: Report,
    /// How many writers wait.
    waiting: Atomic<usize>,
    /// What those that waited have taken, for who looks without the lock: [`Turns::taken`].
    ///
    /// [`Turns::taken`]: super::room::Turns::taken
    taken: Atomic<usize>,
    /// What is dirty and is not waited for, since nobody can write it, and since when, in jiffies.
    stuck: Atomic<usize>,
    despaired: Atomic<usize>,
    /// Since when less than that was dirty each time, in jiffies, or 0.
    less: Atomic<usize>,
    /// When it was looked whether a request is alone.
    sampled: Atomic<usize>,
    /// Whether the control counts what is written, though no writer waits.
    measures: Atomic<bool>,
    /// Whether so much gathers that the ends of streams do not wait for their rest, or the worker
    /// has found that it is not what gathers.
    gathered: Atomic<bool>,
    mappings: Mappings,
    #[pin]
    later: DelayedWork<Wb, 0>,
    /// For what could not be written.
    #[pin]
    seldom: DelayedWork<Wb, 2>,
    #[pin]
    soon: Work<Wb, 1>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 0> for Wb { self.later }
}

impl_has_work! {
    impl HasWork<Self, 1> for Wb { self.soon }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 2> for Wb { self.seldom }
}

impl WorkItem<0> for Wb {
    type Pointer = Arc<Wb>;

    fn run(this: Arc<Wb>) {
        this.write(GATHER);
    }
}

impl WorkItem<1> for Wb {
    type Pointer = Arc<Wb>;

    fn run(this: Arc<Wb>) {
        this.write(0);
    }
}

impl WorkItem<2> for Wb {
    type Pointer = Arc<Wb>;

    fn run(this: Arc<Wb>) {
        this.try_frozen();
        this.write(GATHER);
    }
}

/// A `bdi_writeback` that an inode has at the moment, and keeps while this exists.
///
/// # Invariants
///
/// Between `unlocked_inode_to_wb_begin()` and `unlocked_inode_to_wb_end()`.
struct Current {
    wb: *mut bindings::bdi_writeback,
    mapping: *mut bindings::address_space,
    cookie: bindings::wb_lock_cookie,
}

impl Current {
    /// # Safety
    ///
    /// The mapping lives as long as this, and has been written to.
    #[inline]
    unsafe fn of(mapping: *mut bindings::address_space) -> Self {
        let mut cookie = bindings::wb_lock_cookie::default();
        // SAFETY: As promised by the caller.
        let wb = unsafe { bindings::dontcache_wb_begin(mapping, &mut cookie) };

        Self {
            wb,
            mapping,
            cookie,
        }
    }

    /// What Rust knows of it, unless there was no memory for that.
    #[inline]
    fn get(&self) -> Option<&Wb> {
        // SAFETY: It stays until `wb_exit()`, and the inode has a reference to the wb.
        unsafe { self.wb.as_ref()?.dontcache.cast::<Wb>().as_ref() }
    }

    /// Its uncached pages. About, unless `exact`: each CPU may have some that are not added up.
    #[inline]
    fn footprint(&self, exact: bool) -> Footprint {
        if self.wb.is_null() {
            return Footprint::default();
        }
        // SAFETY: It is a valid wb.
        unsafe {
            Footprint {
                all: bindings::dontcache_wb_stat(self.wb, ALL, exact),
                writeback: bindings::dontcache_wb_stat(self.wb, WRITEBACK, exact),
            }
        }
    }
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants.
        unsafe { bindings::dontcache_wb_end(self.mapping, &mut self.cookie) };
    }
}

/// Another reference to what has one.
fn arc(wb: &Wb) -> Arc<Wb> {
    // SAFETY: All that there is of this type came from `Arc::into_raw()`, and one reference is the
    // `bdi_writeback`'s.
    let ours = unsafe { Arc::from_raw(wb) };
    let another = ours.clone();

    let _ = Arc::into_raw(ours);
    another
}

impl Wb {
    fn new(device: Arc<Device>, flags: Flags) -> Result<Arc<Wb>, AllocError> {
        let mappings = Mappings::new(&device);

        Arc::pin_init(
            pin_init!(Wb {
                device,
                queue <- new_spinlock!(Waiters::new(), "dontcache_waiters"),
                target: Atomic::new(0),
                ahead: Atomic::new(0),
                report: Report::new(),
                waiting: Atomic::new(0),
                taken: Atomic::new(0),
                measures: Atomic::new(false),
                gathered: Atomic::new(false),
                stuck: Atomic::new(0),
                despaired: Atomic::new(0),
                less: Atomic::new(0),
                sampled: Atomic::new(jiffies().wrapping_sub(SAMPLE)),
                mappings,
                later <- new_delayed_work!("dontcache_later"),
                seldom <- new_delayed_work!("dontcache_seldom"),
                soon <- new_work!("dontcache_soon"),
            }),
            flags,
        )
        .map_err(|_| AllocError)
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// How many uncached pages it may have, dirty or under writeback.
    pub(super) fn bound(&self) -> usize {
        let target = match self.target.load(Relaxed) {
            0 => control::first(self.device.queue()).0,
            target => target,
        };

        target.min(self.device.most.load(Relaxed))
    }

    /// What may be under writeback when somebody submits more, in pages.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.device
            .queue()
            .0
            .saturating_add(self.ahead.load(Relaxed))
    }

    /// Whether what CPUs have not added up may be as much as the bound, or as the device's queue
    /// takes; as balance_dirty_pages(). With 64 CPUs and more that is so up to 16 MiB.
    fn is_small(&self) -> bool {
        self.bound().min(self.device.queue().0) < 2 * error()
    }

    /// How fast the device was found to be, and how many writers wait for it.
    pub(super) fn measured(&self) -> (Control, usize) {
        (self.queue.lock().control, self.waiting.load(Relaxed))
    }

    /// How many mappings wait for its worker, and for one of the device.
    pub(super) fn listed(&self) -> (usize, usize) {
        let mut lists = self.device.lists.lock();
        let own = self.mappings.len(&mut lists, false) + self.mappings.len(&mut lists, true);

        (own, lists.0)
    }

    /// Sees to it that the worker writes what is dirty in a mapping: soon, or when it has gathered.
    pub(super) fn add(self: &Arc<Self>, link: ListArc<Dirty>, soon: bool) {
        let mut lists = self.device.lists.lock();
        let before = link.set_home(&mut lists, self.clone(), false);

        self.mappings.push(&mut lists, false, link);
        drop(lists);
        drop(before);
        if soon {
            self.hurry();
        } else {
            let _ = queue().enqueue_delayed::<Arc<Wb>, 0>(self.clone(), GATHER);
        }
    }

    /// Whether a request is to be measured that is alone: the last was a while ago.
    fn is_due(&self) -> bool {
        let now = jiffies();
        let due = now.wrapping_sub(self.sampled.load(Relaxed)) >= SAMPLE;

        if due {
            self.sampled.store(now, Relaxed);
        }
        due
    }

    /// Nothing was started after all.
    pub(super) fn started_nothing(&self) {
        let mut queue = self.queue.lock();

        queue.control.started_nothing();
        self.measures.store(queue.control.measures(), Relaxed);
    }

    pub(super) fn hurry(self: &Arc<Self>) {
        let _ = queue().enqueue::<Arc<Wb>, 1>(self.clone());
    }

    /// Writes what mappings have pending.
    fn write(self: &Arc<Self>, gather: usize) {
        let gathered = self.gathered.xchg(false, Relaxed) && gather == 0;
        let tail = if gathered { 0 } else { TAIL };
        let mut written = 0;
        // Not in the head of the loop, which would hold the lock until its end.
        let nr = self.mappings.len(&mut self.device.lists.lock(), false);

        for _ in 0..nr {
            let mut lists = self.device.lists.lock();
            let Some(dirty) = self.mappings.pop(&mut lists, false) else {
                break;
            };
            let dirty = dirty.into_arc();
            // With the lock: it is not forgotten meanwhile.
            let pinned = dirty.pin();

            drop(lists);
            match pinned {
                Some(pinned) => written += pinned.write(gather, tail),
                // The file system is being unmounted, or mounted in another way, or frozen.
                None => self.put_back(&dirty),
            }
            // SAFETY: Always safe to call.
            if unsafe { bindings::current_is_workqueue_rescuer() } {
                // It is alone for all devices, since there is no memory for another worker. Not at
                // once: what is left may not be due, and nothing would run but this.
                let _ = queue().enqueue_delayed::<Arc<Wb>, 0>(self.clone(), 1);
                break;
            }
            // SAFETY: No locks are held.
            unsafe { bindings::cond_resched() };
        }
        // What is dirty is others'. Asked at each write this would write page by page: not before
        // something has gathered, or somebody waits.
        if gathered && nr > 0 && written < self.bound() / 4 {
            self.gathered.store(true, Relaxed);
        }
    }

    /// Has the worker come later for a mapping, unless it is on a list or forgotten.
    fn put_back(self: &Arc<Self>, dirty: &Arc<Dirty>) {
        let mut lists = self.device.lists.lock();

        if dirty.is_forgotten() {
            return;
        }
        let Ok(link) = ListArc::try_from_arc(dirty.clone()) else {
            return;
        };
        let before = link.set_home(&mut lists, self.clone(), true);

        self.mappings.push(&mut lists, true, link);
        drop(lists);
        drop(before);
        let _ = queue().enqueue_delayed::<Arc<Wb>, 2>(self.clone(), SELDOM);
    }

    /// What could not be written is tried again.
    fn try_frozen(self: &Arc<Self>) {
        let nr = self.mappings.len(&mut self.device.lists.lock(), true);

        for _ in 0..nr {
            let mut lists = self.device.lists.lock();
            let Some(link) = self.mappings.pop(&mut lists, true) else {
                break;
            };
            let before = link.set_home(&mut lists, self.clone(), false);

            self.mappings.push(&mut lists, false, link);
            drop(lists);
            drop(before);
        }
    }

    /// What could not be written when that was tried is tried with the rest: somebody writes to it.
    pub(super) fn thaw(self: &Arc<Self>, lists: &mut Listed, dirty: &Dirty) {
        if !dirty.is_frozen() {
            return;
        }
        // SAFETY: As it is frozen, it is on that list or none.
        let Some(link) = (unsafe { self.mappings.remove(lists, true, dirty) }) else {
            return;
        };

        // The list's is another.
        drop(dirty.set_home(lists, self.clone(), false));
        self.mappings.push(lists, false, link);
        let _ = queue().enqueue_delayed::<Arc<Wb>, 0>(self.clone(), GATHER);
    }

    /// Takes a mapping off the list, for ever. With the lock of the lists held.
    ///
    /// # Safety
    ///
    /// It is on no other list.
    pub(super) unsafe fn forget(
        &self,
        lists: &mut Listed,
        frozen: bool,
        dirty: &Dirty,
    ) -> Option<ListArc<Dirty>> {
        // SAFETY: As promised by the caller.
        unsafe { self.mappings.remove(lists, frozen, dirty) }
    }

    /// What is not waited for of what is `dirty`, and not for longer than that lasts, whether
    /// somebody waits or not: what comes when it is gone is no part of it. Without the lock: the
    /// caller may hold that of the mapping's pages.
    #[inline]
    fn stuck(&self, dirty: usize) -> usize {
        let stuck = self.stuck.load(Relaxed);

        if stuck == 0 || !room::lasts(self.despaired.load(Relaxed), jiffies(), PROMISED) {
            return 0;
        }
        // It is the difference of two counters, which others change meanwhile: one look is none.
        let dirty = dirty.saturating_add(2 * error());
        let since = self.less.load(Relaxed);

        if dirty >= stuck {
            if since > 0 {
                self.less.store(0, Relaxed);
            }
            return stuck;
        }
        if since == 0 {
            self.less.store(jiffies().max(1), Relaxed);
        } else if (PROMISED..usize::MAX / 2).contains(&jiffies().wrapping_sub(since)) {
            self.less.store(0, Relaxed);
            // Unless it was found anew meanwhile.
            let _ = self.stuck.cmpxchg(stuck, dirty, Relaxed);
        }
        dirty
    }

    /// Lets writers go on that have waited longest, as far as there is room for what each may
    /// write.
    fn grant(&self, queue: &mut Waiters, footprint: Footprint) {
        queue.turns.looks(jiffies(), PROMISED);
        queue.turns.saw(self.stuck.load(Relaxed));
        self.stuck.store(queue.turns.stuck(), Relaxed);
        queue.admit(footprint, self.bound(), self.queued());
    }

    /// What there is, seen without the lock. `footprint` is called to look.
    #[inline]
    fn see(&self, footprint: impl FnOnce() -> Footprint) -> Seen {
        // Before the footprint: what is taken later than this counts, though it was seen perhaps.
        let taken = self.taken.load(Acquire);

        Seen {
            footprint: footprint(),
            taken,
        }
    }

    /// Lets writers go on since one of them, perhaps the first, has looked.
    fn heed(&self, queue: &mut Waiters, first: bool, seen: Seen) -> Advice {
        let footprint = queue.turns.now(seen);
        let now = jiffies();
        let advice = queue.patience.found(footprint, now);

        queue.turns.saw(footprint.dirty());
        if let Advice::Share(pages) = advice {
            queue.share(pages);
        }
        match advice {
            Advice::Despair { dirty, idle } => {
                queue.turns.despaired(dirty, now);
                self.despaired.store(now, Relaxed);
                self.less.store(0, Relaxed);
                self.stuck.store(dirty, Relaxed);
                queue.grant_some(if idle { usize::MAX } else { self.bound() / 2 });
            }
            Advice::Wait | Advice::Kick | Advice::Share(_) => {
                if first && footprint.writeback == 0 || queue.turns.may_serve(now, LOOK) {
                    self.grant(queue, footprint);
                }
            }
        }
        advice
    }

    /// Waits from `since` until it is this task's turn to write `size` pages, and returns how many
    /// it may, and when it ran, or it is killed. In the device's queue as well, if it `submits`
    /// them.
    #[cold]
    fn wait(
        &self,
        mapping: *mut bindings::address_space,
        size: usize,
        submits: bool,
        since: Instant,
    ) -> (usize, Instant) {
        let pages = size.min(self.bound() / 2).max(1);
        let mut waiter = Waiter::new(pages, size, submits);
        let this = &raw mut waiter;
        // Else it waits for the bound. To count them looks at all CPUs. Whatever is ahead of the
        // device: that becomes less here only.
        let requests = (submits && self.device.queue().0 < self.bound()).then(|| {
            // SAFETY: The file is open.
            unsafe { device::requests(mapping) }
        });
        let mut woken = since;
        // Not with the lock: interrupts take that of the mapping's pages, which this may hold. None
        // if the inode is another wb's now, whose writers this one need not wait for.
        let look = |looks: bool| {
            // SAFETY: The file is open.
            let current = unsafe { Current::of(mapping) };
            let same = current.get().is_some_and(|wb| ptr::eq(wb, self));

            same.then(|| looks.then(|| self.see(|| current.footprint(true))))
        };
        let mut queue = self.queue.lock();

        // SAFETY: It is removed below, unless it is granted.
        unsafe { queue.push(this) };
        if let Some(requests) = requests {
            queue.control.waits(requests);
        }
        // Before it looks: a completion that it does not see any more sees that it waits.
        self.waiting.fetch_add(1, Full);
        // SAFETY: It is this task's own.
        while !unsafe { (*this).is_granted() } {
            let is_first =
                |queue: &Waiters| queue.first().is_some_and(|first| ptr::eq(first, this));
            let first = is_first(&queue);
            let looks = queue
                .turns
                .may_look(jiffies(), if first { 0 } else { LOOK });

            drop(queue);
            let found = look(looks);

            queue = self.queue.lock();
            // SAFETY: The file is open.
            if found.is_none() || unsafe { freezes(mapping) } {
                break;
            }
            // SAFETY: It is this task's own. Others may have let it go on since, and know more.
            if let Some(seen) = found.flatten().filter(|_| !unsafe { (*this).is_granted() }) {
                // Who looks may have had no CPU itself: nobody whom this lets go on is late for a
                // while.
                queue.at = woken.plus(NOT_LATE);
                if self.heed(&mut queue, first, seen) == Advice::Kick {
                    drop(queue);
                    // SAFETY: The file is open.
                    unsafe { bindings::filemap_dontcache_kick_writeback(mapping) };
                    queue = self.queue.lock();
                }
            }
            // Many that wait look seldom, since each takes the lock: who was the first before wakes
            // the next.
            let dozes = self.waiting.load(Relaxed) > MANY && !is_first(&queue);
            let sleep = if dozes { TENTH } else { LOOK };

            // SAFETY: It is this task's own state; who grants it sets it to running. Others look at
            // the rest with the lock only.
            unsafe {
                (*this).dozes = dozes;
                bindings::__set_current_state(bindings::TASK_KILLABLE);
                if (*this).is_granted() || bindings::dontcache_killed() {
                    break;
                }
            }
            queue.control.held();
            drop(queue);
            // SAFETY: No locks are held.
            unsafe { bindings::io_schedule_timeout(sleep as c_long) };
            woken = now();
            queue = self.queue.lock();
        }
        // SAFETY: As above.
        unsafe { bindings::__set_current_state(bindings::TASK_RUNNING) };
        // SAFETY: It is this task's own.
        let granted = unsafe { (*this).is_granted() };

        if granted {
            // SAFETY: As above.
            unsafe { (*this).take(&mut queue.turns) };
            self.taken.store(queue.turns.taken(), Release);
        } else {
            // SAFETY: It was pushed, and who grants it takes it out.
            unsafe { queue.leave(this) };
        }
        queue.wake_first();
        self.waiting.fetch_sub(1, Relaxed);
        if !granted {
            return (0, woken);
        }
        if requests.is_some() {
            let is_late = woken.since(waiter.granted_at()) > LATE;

            drop(queue);

            let requests = is_late.then(|| {
                // SAFETY: The file is open.
                unsafe { device::requests(mapping) }
            });
            let bound = Pages(self.bound());
            let mut queue = self.queue.lock();
            let ahead = queue.control.let_go(requests, MOST_GOOD, bound);

            self.ahead.store(ahead.0, Relaxed);
        }
        (pages, woken)
    }
}

/// Whether the file system of the mapping is to be frozen, which waits for writers. They write what
/// they have begun, and no more.
///
/// # Safety
///
/// The file of the mapping is open.
unsafe fn freezes(mapping: *mut bindings::address_space) -> bool {
    // SAFETY: As promised by the caller. Who freezes it sets that meanwhile.
    let frozen = unsafe {
        let sb = (*(*mapping).host).i_sb;

        (&raw const (*sb).s_writers.frozen).read_volatile()
    };

    c_uint::from(frozen) != bindings::SB_UNFROZEN
}

/// Where workers run: writers may be who frees memory for others.
fn queue() -> &'static Queue {
    // SAFETY: It is set once, before the first file system.
    unsafe { Queue::from_raw(bindings::dontcache_wq) }
}

/// Whether a writer that may not wait has to: others do, or there is no room for `pages`, or, if
/// they make a good request, in the device's queue. A worker would submit what this writes.
///
/// # Safety
///
/// The file of the mapping is open.
pub(super) unsafe fn must_wait(
    mapping: *mut bindings::address_space,
    pages: usize,
    is_good: bool,
) -> bool {
    // SAFETY: As promised by the caller.
    let current = unsafe { Current::of(mapping) };

    let Some(wb) = current.get() else {
        return false;
    };
    let bound = wb.bound();
    let queue = if is_good { wb.queued() } else { usize::MAX };
    let fits = |all: Footprint| all.fits(pages, bound) && all.all <= queue;

    if wb.waiting.load(Relaxed) > 0 {
        return true;
    }
    let counted = if wb.is_small() { error() } else { 0 };
    let approximate = current.footprint(false);
    let stuck = wb.stuck(approximate.dirty());

    if fits(approximate.without(stuck).with(counted)) {
        return false;
    }

    // To add up all CPUs' takes long, and makes a difference near the bound, and for whether the
    // device does nothing.
    let exact = wb.is_small() || approximate.writeback <= error();
    let seen = wb.see(|| {
        if exact {
            current.footprint(true)
        } else {
            approximate
        }
    });
    let footprint = seen.footprint.without(stuck);
    let must = !fits(footprint);

    // Nobody waits who would see to it that this ends.
    if must && footprint.writeback == 0 {
        let wb = arc(wb);

        wb.hurry();
        // The flusher's part finds the wb anew, with the lock that this may hold. And interrupts
        // take that one.
        drop(current);
        // What cannot be written is not waited for: if nobody waits, who tries again finds out.
        let now = now();
        let mut queue = wb.queue.lock();

        queue.at = now;
        wb.heed(&mut queue, false, seen);
        drop(queue);
        // SAFETY: As promised by the caller.
        unsafe { bindings::filemap_dontcache_kick_writeback(mapping) };
    }
    must
}

/// Follows a write after which the writer wants to write `pages` more: has a worker write what has
/// gathered if it is much, and the device has little to do, and waits until there is room, unless
/// `nowait`. In the device's queue as well, if it `submits` what it writes. Returns how many it may
/// write without asking again.
///
/// # Safety
///
/// The file of the mapping is open, and no locks are held.
#[inline]
pub(super) unsafe fn pace(
    mapping: *mut bindings::address_space,
    pages: usize,
    submits: bool,
    nowait: bool,
) -> usize {
    // SAFETY: As promised by the caller.
    let current = unsafe { Current::of(mapping) };
    let Some(wb) = current.get() else {
        return 0;
    };
    let target = wb.bound();
    let queue = if submits {
        // Somebody may have set it anew.
        //
        // SAFETY: As promised by the caller.
        wb.device.set_queue(unsafe { device::queue_pages(mapping) });
        wb.queued()
    } else {
        usize::MAX
    };
    let has_room = |all: Footprint| all.has_room(pages, target) && all.is_queued(queue);
    let approximate = current.footprint(false);
    let stuck = wb.stuck(approximate.dirty());
    let mut footprint = approximate.without(stuck);

    let exact = wb.is_small() && !has_room(footprint.with(error()));

    // To add up all CPUs' takes long, and is of use only near the bound.
    if exact {
        footprint = current.footprint(true).without(stuck);
    }
    // Who sets it queues the worker, which takes it away.
    if footprint.is_gathered(target) && !(wb.gathered.load(Relaxed) && has_room(footprint)) {
        wb.gathered.store(true, Relaxed);
        arc(wb).hurry();
    }
    if nowait || wb.waiting.load(Relaxed) == 0 && has_room(footprint) {
        // Not at each write.
        return if exact && !nowait { pages } else { 0 };
    }
    let wb = arc(wb);
    let since = now();

    drop(current);
    let (granted, woken) = wb.wait(mapping, pages, submits, since);
    let pause = woken.since(since);

    wb.report.paused(pause);
    // SAFETY: As promised by the caller.
    unsafe { trace::dontcache_pause(mapping, footprint.all, footprint.writeback, target, pause.0) };
    granted
}

/// Notes that writeback begins. If the device has nothing else to do, what comes of it is to be
/// told to the result.
///
/// # Safety
///
/// The file of the mapping is open.
#[inline]
pub(super) unsafe fn starting(mapping: *mut bindings::address_space) -> Option<Arc<Wb>> {
    // SAFETY: As promised by the caller.
    let current = unsafe { Current::of(mapping) };
    let wb = current.get()?;

    // SAFETY: It is a valid wb. Others count meanwhile.
    if unsafe { (&raw const (*current.wb).writeback_inodes.counter).read_volatile() } != 0 {
        return None;
    }
    // Not each time: it looks at all cgroups.
    //
    // SAFETY: As above.
    let alone = wb.is_due() && unsafe { bindings::dontcache_device_idle(current.wb) };
    let wb = arc(wb);

    drop(current);
    let mut queue = wb.queue.lock();

    queue.control.started(now(), alone);
    wb.measures.store(queue.control.measures(), Relaxed);
    drop(queue);
    Some(wb)
}

/// Writeback of `pages` was started.
///
/// # Safety
///
/// As for [`starting`].
#[inline]
pub(super) unsafe fn started(mapping: *mut bindings::address_space, pages: usize) {
    // SAFETY: As promised by the caller.
    if let Some(wb) = unsafe { Current::of(mapping) }.get() {
        wb.report.started(pages);
    }
}

/// Who is to be told that pages have been written, if somebody wants to know.
///
/// # Safety
///
/// The mapping lives.
#[inline]
pub(in crate::dontcache) unsafe fn to_be_told(
    mapping: *mut bindings::address_space,
) -> Option<Written> {
    // SAFETY: As promised by the caller.
    let current = unsafe { Current::of(mapping) };
    let wb = current.get()?;

    // Pairs with Wb::wait(): what has ended is seen there, or that somebody waits is seen here.
    barrier::smp_mb(barrier::Full);
    if wb.waiting.load(Relaxed) == 0 && !wb.measures.load(Relaxed) {
        return None;
    }
    Some(Written {
        seen: wb.see(|| current.footprint(wb.is_small())),
        wb: arc(wb),
    })
}

/// A `bdi_writeback`, and its uncached pages when the mapping was there still.
pub(in crate::dontcache) struct Written {
    wb: Arc<Wb>,
    seen: Seen,
}

impl Written {
    /// Notes that `pages` have been written, and lets writers go on.
    pub(in crate::dontcache) fn tell(&self, pages: usize) {
        let mut queue = self.wb.queue.lock();

        // With the lock: what is measured of the device is in order.
        queue.at = now();
        if queue.first().is_some() {
            queue.control.held();
            queue.patience.written(pages);
        }

        let at = queue.at;

        queue.control.written(at, Pages(pages));
        self.wb.measures.store(queue.control.measures(), Relaxed);

        let before = Pages(self.wb.target.load(Relaxed));
        let takes = self.wb.device.queue();
        let bound = queue.control.follow(before, Pages(pages), span(), takes);

        self.wb.target.store(bound.0, Relaxed);

        let footprint = queue.turns.now(self.seen);

        self.wb.grant(&mut queue, footprint);
    }
}

/// The `Wb` that a mapping has now, to be kept. That of its device if there was no memory for it.
///
/// # Safety
///
/// The file of the mapping is open.
pub(super) unsafe fn of(mapping: *mut bindings::address_space) -> Option<Arc<Wb>> {
    // SAFETY: As promised by the caller.
    unsafe {
        Current::of(mapping)
            .get()
            .map(arc)
            .or_else(|| of_device(mapping).map(arc))
    }
}

/// The `Wb` of the device of a mapping.
///
/// # Safety
///
/// The file of the mapping is open for `'a`.
#[inline]
unsafe fn of_device<'a>(mapping: *mut bindings::address_space) -> Option<&'a Wb> {
    // SAFETY: As promised by the caller: its device lives.
    unsafe {
        (*bindings::dontcache_root_wb(mapping))
            .dontcache
            .cast::<Wb>()
            .as_ref()
    }
}

/// The policy of the device of a mapping, if it has one of its own.
///
/// # Safety
///
/// The file of the mapping is open.
#[inline]
pub(super) unsafe fn policy_of(mapping: *mut bindings::address_space) -> Option<Policy> {
    // SAFETY: As promised by the caller.
    unsafe { of_device(mapping)? }.device.policy()
}

/// Adds what Rust knows to a new `bdi_writeback`. `gfp` is for memory.
///
/// # Errors
///
/// `ENOMEM`: then the writes of a cgroup are those of the root, as without memory for the rest.
///
/// # Safety
///
/// Nobody else uses it yet.
pub unsafe fn init(wb: *mut bindings::bdi_writeback, gfp: bindings::gfp_t) -> Result {
    // SAFETY: As promised by the caller. The device's own is the first, and goes last.
    let (first, of_device) = unsafe {
        let first = &raw const (*(*wb).bdi).wb;

        (ptr::eq(wb, first), (*first).dontcache.cast::<Wb>().as_ref())
    };
    let kernel = GFP_KERNEL.as_raw();
    let flags = if gfp & kernel == kernel {
        GFP_KERNEL
    } else {
        GFP_ATOMIC
    };
    let device = if first {
        Device::new()?
    } else {
        of_device.ok_or(ENOMEM)?.device.clone()
    };
    let new = Wb::new(device, flags)?;

    // SAFETY: As promised by the caller.
    unsafe { (*wb).dontcache = Arc::into_raw(new).cast_mut().cast() };
    Ok(())
}

/// The other half of [`init()`].
///
/// # Safety
///
/// Nobody else uses it any more.
pub unsafe fn exit(wb: *mut bindings::bdi_writeback) {
    // What is added with the mark or a tag of a folio is to be taken away with it.
    //
    // SAFETY: As promised by the caller.
    warn_on!(cfg!(CONFIG_DEBUG_VM) && unsafe { bindings::dontcache_wb_left(wb) } != 0);
    // SAFETY: As promised by the caller; it came from `Arc::into_raw()`.
    unsafe {
        let old = core::mem::replace(&mut (*wb).dontcache, ptr::null_mut());

        if !old.is_null() {
            drop(Arc::from_raw(old.cast::<Wb>()));
        }
    }
}

#[cfg(CONFIG_DONTCACHE_RUST_KUNIT_TEST)]
#[macros::kunit_tests(dontcache_wb)]
mod tests {
    use super::*;
    use crate::time::msecs_to_jiffies;

    #[test]
    fn jiffies_are_those_of_the_kernel() {
        assert_eq!(SELDOM, msecs_to_jiffies(1000) as usize);
        assert_eq!(TENTH, msecs_to_jiffies(100) as usize);
        assert_eq!(GATHER, msecs_to_jiffies(20) as usize);
        assert_eq!(LOOK, msecs_to_jiffies(10) as usize);
    }

    #[test]
    fn what_comes_when_it_is_gone_is_not_stuck() {
        let wb = Device::new().and_then(|device| Wb::new(device, GFP_KERNEL));
        let wb = wb.expect("memory");

        wb.stuck.store(1_000_000, Relaxed);
        wb.despaired.store(jiffies(), Relaxed);
        assert_eq!(wb.stuck(2_000_000), 1_000_000);
        // One look is none, nor are two if it was more between them.
        assert_eq!(wb.stuck(1000), 1000 + 2 * error());
        wb.less.store(jiffies().wrapping_sub(PROMISED), Relaxed);
        assert_eq!(wb.stuck(2_000_000), 1_000_000);
        assert_eq!(wb.stuck(1000), 1000 + 2 * error());
        assert_eq!(wb.stuck(2_000_000), 1_000_000);
        assert_eq!(wb.stuck(1000), 1000 + 2 * error());
        wb.less.store(jiffies().wrapping_sub(PROMISED), Relaxed);
        assert_eq!(wb.stuck(1000), 1000 + 2 * error());
        assert_eq!(wb.stuck(2_000_000), 1000 + 2 * error());

        // Nor is it for who lets others go on.
        let mut waiters = wb.queue.lock();

        waiters.turns.despaired(1_000_000, jiffies());
        wb.grant(&mut waiters, Footprint::default());
        assert_eq!(waiters.turns.stuck(), 1000 + 2 * error());
        drop(waiters);
        wb.despaired
            .store(jiffies().wrapping_sub(300 * PROMISED), Relaxed);
        assert_eq!(wb.stuck(2_000_000), 0);
    }
}
