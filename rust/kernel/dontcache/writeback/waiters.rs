// SPDX-License-Identifier: GPL-2.0

//! Writers that wait for room, in the order in which they came.

use super::{
    control::Control,
    room::{
        Admits,
        Footprint,
        Patience,
        Turns, //
    },
    units::Instant,
    wb::{
        jiffies,
        TENTH, //
    }, //
};
use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed,
        Release, //
    }, //
};
use core::ptr;

/// How many of those that wait are looked at when the first has to wait on.
const LOOKED_AT: usize = 64;

/// Writers that wait, first come first served, and what they wait for.
///
/// # Invariants
///
/// The chain from `first` through `next` ends at `last`, and `before` is the way back. Each waiter
/// of it lives until it is taken out, with the lock held.
pub(super) struct Waiters {
    pub(super) control: Control,
    first: *mut Waiter,
    last: *mut Waiter,
    pub(super) turns: Turns,
    pub(super) patience: Patience,
    /// How much those are to write that have passed the first.
    passed: usize,
    /// When it was looked whom there is room for: to read the clock for each would take long.
    pub(super) at: Instant,
}

/// A task that waits, on its own stack.
pub(super) struct Waiter {
    task: *mut bindings::task_struct,
    /// How much it may write then, and how much it is going to.
    pub(super) pages: usize,
    pub(super) size: usize,
    /// Whether it submits what it writes.
    submits: bool,
    granted: Atomic<bool>,
    /// Of that: for [`Turns::took`], and when it was.
    round: Atomic<usize>,
    at: Atomic<usize>,
    /// Whether it sleeps for long.
    pub(super) dozes: bool,
    before: *mut Waiter,
    next: *mut Waiter,
}

impl Waiter {
    /// This task, which is to write `size` pages, and asks for `pages` of room, in the device's
    /// queue as well if it `submits` them.
    pub(super) fn new(pages: usize, size: usize, submits: bool) -> Self {
        Self {
            // SAFETY: Always safe to call.
            task: unsafe { bindings::get_current() },
            pages,
            size,
            submits,
            granted: Atomic::new(false),
            round: Atomic::new(0),
            at: Atomic::new(0),
            dozes: false,
            before: ptr::null_mut(),
            next: ptr::null_mut(),
        }
    }

    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Relaxed)
    }

    /// When that was. With the lock held.
    pub(super) fn granted_at(&self) -> Instant {
        Instant(self.at.load(Relaxed))
    }

    /// What was granted is taken. With the lock held.
    pub(super) fn take(&self, turns: &mut Turns) {
        turns.took(self.pages, self.round.load(Relaxed));
    }
}

// SAFETY: What the pointers point to is only used with the lock held.
unsafe impl Send for Waiters {}

impl Waiters {
    pub(super) fn new() -> Self {
        Self {
            control: Control::default(),
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            turns: Turns::default(),
            patience: Patience::new(TENTH),
            passed: 0,
            at: Instant(0),
        }
    }

    /// Lets the first go on, and the next, up to `most` pages in all, though there is no room.
    pub(super) fn grant_some(&mut self, most: usize) {
        let mut pages = 0_usize;

        while pages == 0
            || self
                .first()
                .is_some_and(|next| pages.saturating_add(next.size) <= most)
        {
            let Some(next) = self.first() else {
                break;
            };

            pages = pages.saturating_add(next.size);
            self.grant_first();
        }
        // What was kept for the first as well.
        self.patience.shared(pages);
    }

    /// # Safety
    ///
    /// `waiter` lives until it is granted or removed.
    pub(super) unsafe fn push(&mut self, waiter: *mut Waiter) {
        // SAFETY: By the type invariants, and as promised by the caller.
        unsafe {
            (*waiter).before = self.last;
            match self.last.as_mut() {
                Some(last) => last.next = waiter,
                None => self.first = waiter,
            }
        }
        self.last = waiter;
    }

    pub(super) fn first(&self) -> Option<&Waiter> {
        // SAFETY: By the type invariants.
        unsafe { self.first.as_ref() }
    }

    /// Lets the first go on.
    pub(super) fn grant_first(&mut self) {
        // SAFETY: It is in the chain, if there is one.
        unsafe { self.grant(self.first) };
    }

    /// Lets those go on for whom there is room below `bound`, in their order. If the first waits
    /// for the device's `queue` only, who does not passes it, for as much as it is to write.
    pub(super) fn admit(&mut self, footprint: Footprint, bound: usize, queue: usize) {
        let (mut at, mut passed) = (self.first, 0);

        while passed < LOOKED_AT {
            // SAFETY: By the type invariants.
            let Some(waiter) = (unsafe { at.as_ref() }) else {
                break;
            };
            let (this, size) = (at, waiter.size);

            at = waiter.next;

            let takes = if waiter.submits { queue } else { usize::MAX };

            match self.turns.admits(footprint, waiter.pages, bound, takes) {
                Admits::It if passed == 0 => {
                    // SAFETY: It is in the chain.
                    unsafe { self.grant(this) };
                    self.patience.served(size);
                }
                Admits::It if self.passed < self.first().map_or(0, |first| first.pages) => {
                    self.passed = self.passed.saturating_add(size);
                    // SAFETY: It is in the chain.
                    unsafe { self.grant(this) };
                    self.patience.let_go(size);
                }
                Admits::It => break,
                Admits::Others => passed += 1,
                Admits::Nobody => break,
            }
        }
    }

    /// Lets those go on that fit into `most` pages, in their order, though there is no room. Not
    /// all are looked at, since completions wait for that.
    ///
    /// The first is passed by as much as it is to write. From then on others have half of all
    /// shares, and the rest adds up until the first fits: else small ones would have all of each,
    /// or none as long as it takes.
    pub(super) fn share(&mut self, most: usize) {
        let (mut left, mut at) = (most, self.first);

        for _ in 0..LOOKED_AT {
            // SAFETY: By the type invariants.
            let (Some(waiter), Some(first)) = (unsafe { (at.as_ref(), self.first.as_ref()) })
            else {
                break;
            };
            let (this, size) = (at, waiter.size);
            let passes = this != self.first;

            at = waiter.next;
            let fits = match self.passed.checked_sub(first.size).filter(|_| passes) {
                Some(beyond) => size <= left.saturating_sub(beyond) / 2,
                None => size <= left,
            };

            if fits {
                left -= size;
                if passes {
                    self.passed = self.passed.saturating_add(size);
                }
                // SAFETY: It is in the chain.
                unsafe { self.grant(this) };
            }
        }
        self.patience.shared(most - left);
    }

    /// Lets one go on. It does not return before it has had the lock, which is held here.
    ///
    /// # Safety
    ///
    /// It is in the chain, or null.
    unsafe fn grant(&mut self, waiter: *mut Waiter) {
        // SAFETY: As promised by the caller.
        let Some(granted) = (unsafe { waiter.as_ref() }) else {
            return;
        };
        let task = granted.task;
        let round = self.turns.granted(granted.pages, jiffies());

        granted.round.store(round, Relaxed);
        granted.at.store(self.at.0, Relaxed);
        // SAFETY: As promised by the caller.
        unsafe { self.remove(waiter) };
        granted.granted.store(true, Release);
        // SAFETY: As said above: it lives.
        unsafe { bindings::wake_up_process(task) };
    }

    /// Who is the first now is to look as often as that one does.
    pub(super) fn wake_first(&self) {
        if let Some(first) = self.first().filter(|first| first.dozes) {
            // SAFETY: By the type invariants it lives.
            unsafe { bindings::wake_up_process(first.task) };
        }
    }

    /// It does not wait any more.
    ///
    /// # Safety
    ///
    /// `waiter` is in the chain.
    pub(super) unsafe fn leave(&mut self, waiter: *mut Waiter) {
        if ptr::eq(self.first, waiter) {
            self.patience.left();
        }
        // SAFETY: As promised by the caller.
        unsafe { self.remove(waiter) };
    }

    /// # Safety
    ///
    /// `waiter` is in the chain.
    unsafe fn remove(&mut self, waiter: *mut Waiter) {
        if ptr::eq(self.first, waiter) {
            // Nobody has passed the next.
            self.passed = 0;
        }
        // SAFETY: As promised by the caller, and by the type invariants.
        unsafe {
            let (before, next) = ((*waiter).before, (*waiter).next);

            match before.as_mut() {
                Some(before) => before.next = next,
                None => self.first = next,
            }
            match next.as_mut() {
                Some(next) => next.before = before,
                None => self.last = before,
            }
        }
    }
}

#[cfg(CONFIG_DONTCACHE_RUST_KUNIT_TEST)]
#[macros::kunit_tests(dontcache_waiters)]
mod tests {
    use super::*;
    use crate::dontcache::writeback::room::Advice;

    /// Who is in the chain, by their pages, and that it ends at the last.
    fn chain(waiters: &Waiters) -> [usize; 4] {
        let (mut nrs, mut at, mut last) = ([0; 4], waiters.first, ptr::null_mut::<Waiter>());

        for nr in &mut nrs {
            // SAFETY: By the type invariants.
            let Some(waiter) = (unsafe { at.as_ref() }) else {
                break;
            };

            *nr = waiter.pages;
            assert!(ptr::eq(waiter.before, last));
            last = at;
            at = waiter.next;
        }
        assert!(ptr::eq(last, waiters.last));
        nrs
    }

    #[test]
    fn first_come_first_served_whoever_leaves() {
        for gone in 1..=3 {
            let mut all = [1, 2, 3].map(|nr| Waiter::new(nr, 10 * nr, true));
            let mut late = Waiter::new(4, 40, true);
            let mut waiters = Waiters::new();
            let base = all.as_mut_ptr();

            for nr in 0..3 {
                // SAFETY: They outlive `waiters`, and are not moved.
                unsafe { waiters.push(base.add(nr)) };
            }
            assert_eq!(chain(&waiters), [1, 2, 3, 0]);
            // SAFETY: It is one of the three.
            unsafe { waiters.leave(base.add(gone - 1)) };
            // SAFETY: As above.
            unsafe { waiters.push(&raw mut late) };

            let mut left = chain(&waiters);

            assert_eq!(left, [[2, 3, 4, 0], [1, 3, 4, 0], [1, 2, 4, 0]][gone - 1]);
            waiters.grant_first();
            left.rotate_left(1);
            assert_eq!(chain(&waiters), [left[0], left[1], 0, 0]);
            assert!(!late.is_granted());
            // One in any case.
            waiters.grant_some(10 * (left[0] + left[1]) - 1);
            assert_eq!(chain(&waiters), [left[1], 0, 0, 0]);
            waiters.grant_some(usize::MAX);
            assert_eq!(chain(&waiters), [0; 4]);
            assert!(late.is_granted());
            for (nr, waiter) in all.iter().enumerate() {
                assert_eq!(waiter.is_granted(), nr != gone - 1);
            }
            // Of nobody.
            waiters.grant_first();
            assert_eq!(chain(&waiters), [0; 4]);
        }
    }

    #[test]
    fn who_submits_nothing_passes_who_waits_for_the_queue() {
        let mut all = [(4, true), (5, false), (8, true), (6, false)]
            .map(|(nr, submits)| Waiter::new(nr, nr, submits));
        let mut waiters = Waiters::new();
        let base = all.as_mut_ptr();
        let seen = |writeback| Footprint { all: 20, writeback };

        for nr in 0..4 {
            // SAFETY: They outlive `waiters`, and are not moved.
            unsafe { waiters.push(base.add(nr)) };
        }
        // Nobody passes who waits for room.
        waiters.admit(seen(11), 10, 10);
        assert_eq!(chain(&waiters), [4, 5, 8, 6]);
        // As much as the first is to write, and no more.
        waiters.admit(seen(11), 1000, 10);
        assert_eq!(chain(&waiters), [4, 8, 6, 0]);
        waiters.admit(seen(11), 1000, 10);
        assert_eq!(chain(&waiters), [4, 8, 6, 0]);
        // However the first leaves, somebody passes the next.
        // SAFETY: It is the first.
        unsafe { waiters.leave(base) };
        waiters.admit(seen(11), 1000, 10);
        assert_eq!(chain(&waiters), [8, 0, 0, 0]);
        waiters.admit(seen(11), 1000, 11);
        assert_eq!(chain(&waiters), [8, 0, 0, 0]);
        waiters.admit(seen(11), 1000, 22);
        assert_eq!(chain(&waiters), [0; 4]);
    }

    #[test]
    fn who_fits_has_a_share() {
        let mut all = [5, 2, 9, 1].map(|nr| Waiter::new(nr, nr, true));
        let mut waiters = Waiters::new();
        let base = all.as_mut_ptr();

        for nr in 0..4 {
            // SAFETY: They outlive `waiters`, and are not moved.
            unsafe { waiters.push(base.add(nr)) };
        }
        waiters.share(0);
        assert_eq!(chain(&waiters), [5, 2, 9, 1]);
        waiters.share(3);
        assert_eq!(chain(&waiters), [5, 9, 0, 0]);
        waiters.share(9);
        assert_eq!(chain(&waiters), [9, 0, 0, 0]);
        waiters.share(9);
        assert_eq!(chain(&waiters), [0; 4]);
        waiters.share(9);
    }

    #[test]
    fn what_was_kept_for_the_first_is_gone_with_it() {
        // Who leaves, and what there is to be shared then.
        for (gone, shared) in [(0, 5), (1, 255)] {
            let mut all = [300, 300].map(|nr| Waiter::new(nr, nr, true));
            let mut waiters = Waiters::new();
            let base = all.as_mut_ptr();
            let seen = |all| Footprint { all, writeback: 0 };

            for nr in 0..2 {
                // SAFETY: They outlive `waiters`, and are not moved.
                unsafe { waiters.push(base.add(nr)) };
            }
            assert_eq!(waiters.patience.found(seen(1000), 0), Advice::Wait);
            waiters.patience.written(500);
            assert_eq!(
                waiters.patience.found(seen(990), 2 * TENTH),
                Advice::Share(250)
            );
            // SAFETY: It is in the chain.
            unsafe { waiters.leave(base.add(gone)) };
            assert_eq!(chain(&waiters), [300, 0, 0, 0]);
            assert_eq!(
                waiters.patience.found(seen(980), 2 * TENTH),
                Advice::Share(shared)
            );
        }
    }

    #[test]
    fn shares_add_up_for_who_was_passed() {
        // Of the first, what it may write at once, of which it is to write 3.
        for pages in 1..=3 {
            let mut all = [3, 2, 2, 1, 1].map(|nr| Waiter::new(nr, nr, true));
            let mut waiters = Waiters::new();
            let base = all.as_mut_ptr();

            all[0].pages = pages;
            for nr in 0..5 {
                // SAFETY: They outlive `waiters`, and are not moved.
                unsafe { waiters.push(base.add(nr)) };
            }
            waiters.share(2);
            assert_eq!(chain(&waiters), [pages, 2, 1, 1]);
            waiters.share(2);
            assert_eq!(chain(&waiters), [pages, 1, 1, 0]);
            waiters.share(1);
            assert_eq!(chain(&waiters), [pages, 1, 1, 0]);
            // It was passed by 4: of these and 2 more others have had half.
            waiters.share(2);
            assert_eq!(chain(&waiters), [pages, 1, 1, 0]);
            waiters.share(3);
            assert_eq!(chain(&waiters), [1, 1, 0, 0]);
            waiters.share(2);
            assert_eq!(chain(&waiters), [0; 4]);
        }
    }
}
