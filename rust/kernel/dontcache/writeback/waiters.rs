// SPDX-License-Identifier: GPL-2.0

//! Writers that wait for room, in the order in which they came.

use super::control::Control;
use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed,
        Release, //
    }, //
};
use core::ptr;

/// Writers that wait, first come first served, and what they wait for.
///
/// # Invariants
///
/// The chain from `first` through `next` ends at `last`. Each waiter of it lives until it is taken
/// out, with the lock held.
pub(super) struct Waiters {
    pub(super) control: Control,
    first: *mut Waiter,
    last: *mut Waiter,
    owed: usize,
    /// When somebody looked last for whom there is room, in jiffies.
    looked: usize,
}

/// A task that waits, on its own stack.
pub(super) struct Waiter {
    task: *mut bindings::task_struct,
    /// How much it may write then.
    pub(super) pages: usize,
    granted: Atomic<bool>,
    next: *mut Waiter,
}

impl Waiter {
    /// This task.
    pub(super) fn new(pages: usize) -> Self {
        Self {
            // SAFETY: Always safe to call.
            task: unsafe { bindings::get_current() },
            pages,
            granted: Atomic::new(false),
            next: ptr::null_mut(),
        }
    }

    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Relaxed)
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
            owed: 0,
            looked: 0,
        }
    }

    /// How many pages those may write who were granted it and have not run since.
    pub(super) fn owed(&self) -> usize {
        self.owed
    }

    /// Whether nobody has looked for `ticks` jiffies.
    pub(super) fn may_look(&mut self, now: usize, ticks: usize) -> bool {
        let may = now.wrapping_sub(self.looked) >= ticks;

        if may {
            self.looked = now;
        }
        may
    }

    /// Lets all go on.
    pub(super) fn grant_all(&mut self) {
        while !self.first.is_null() {
            self.grant_first();
        }
    }

    /// One of them runs, and may write `pages`.
    pub(super) fn took(&mut self, pages: usize) {
        self.owed = self.owed.saturating_sub(pages);
    }

    /// # Safety
    ///
    /// `waiter` lives until it is granted or removed.
    pub(super) unsafe fn push(&mut self, waiter: *mut Waiter) {
        // SAFETY: By the type invariants, and as promised by the caller.
        unsafe {
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

    /// Lets the first go on. It does not return before it has had the lock, which is held here.
    pub(super) fn grant_first(&mut self) {
        // SAFETY: By the type invariants.
        let Some(first) = (unsafe { self.first.as_ref() }) else {
            return;
        };
        let task = first.task;

        self.owed = self.owed.saturating_add(first.pages);
        self.first = first.next;
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        first.granted.store(true, Release);
        // SAFETY: As said above: it lives.
        unsafe { bindings::wake_up_process(task) };
    }

    pub(super) fn remove(&mut self, waiter: *mut Waiter) {
        let (mut before, mut at) = (ptr::null_mut::<Waiter>(), self.first);

        while !at.is_null() && at != waiter {
            before = at;
            // SAFETY: By the type invariants.
            at = unsafe { (*at).next };
        }
        // SAFETY: As above.
        unsafe {
            let Some(at) = at.as_ref() else {
                return;
            };

            match before.as_mut() {
                Some(before) => before.next = at.next,
                None => self.first = at.next,
            }
        }
        if self.last == waiter {
            self.last = before;
        }
    }
}
