// SPDX-License-Identifier: GPL-2.0

//! All interleavings of a producer, the worker of its CPU, and the worker that takes over when
//! that CPU goes offline, under the C11 memory model. Each property is also checked to be one
//! that a bug would break: with the bug put in, the model has to fail.

use dontcache_host::batch::{
    drain,
    push,
    Stack, //
};
use loom::{
    cell::UnsafeCell,
    model::Builder,
    sync::{
        atomic::{
            fence,
            AtomicBool,
            AtomicUsize,
            Ordering, //
        },
        Arc,
        Mutex, //
    },
    thread,
};

const NODES: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// The producer decides by its first look at the head whether to queue the worker.
    StaleLook,
    /// The workqueue clears the pending bit after the worker has run, not before.
    LatePending,
    /// The head is read and then emptied, in two steps.
    TornTake,
    /// The link of a node is not visible to who takes the node.
    NoRelease,
}

struct Cpu {
    /// 0 for empty, else the node's index plus 1.
    head: AtomicUsize,
    next: [UnsafeCell<usize>; NODES],
    /// The pending bit of the work item.
    pending: AtomicBool,
    /// A work item never runs twice at the same time.
    running: Mutex<Vec<usize>>,
    offline: AtomicBool,
    bug: Bug,
}

impl Stack for Cpu {
    type Node = usize;

    fn peek(&self) -> Option<usize> {
        self.head.load(Ordering::Relaxed).checked_sub(1)
    }

    fn replace(&self, old: Option<usize>, new: usize) -> Result<(), Option<usize>> {
        let order = match self.bug {
            Bug::NoRelease => Ordering::Relaxed,
            _ => Ordering::Release,
        };

        self.head
            .compare_exchange(old.map_or(0, |n| n + 1), new + 1, order, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|now| now.checked_sub(1))
    }

    fn take(&self) -> Option<usize> {
        if self.bug == Bug::TornTake {
            let head = self.head.load(Ordering::Acquire);
            self.head.store(0, Ordering::Relaxed);
            return head.checked_sub(1);
        }
        self.head.swap(0, Ordering::Acquire).checked_sub(1)
    }

    // SAFETY: (of both) A node belongs to who pushes or drains it, loom checks that.
    fn next(&self, node: usize) -> Option<usize> {
        self.next[node].with(|next| unsafe { *next }).checked_sub(1)
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        self.next[node].with_mut(|to| unsafe { *to = next.map_or(0, |n| n + 1) });
    }
}

impl Cpu {
    fn new(bug: Bug) -> Self {
        Cpu {
            head: AtomicUsize::new(0),
            next: core::array::from_fn(|_| UnsafeCell::new(0)),
            pending: AtomicBool::new(false),
            running: Mutex::new(Vec::new()),
            offline: AtomicBool::new(false),
            bug,
        }
    }

    /// bio_task_enqueue(): push, and queue the worker. test_and_set_bit() is a full barrier.
    fn enqueue(&self, node: usize) {
        let looked = self.peek();
        let queue = push(self, node);
        let queue = match self.bug {
            Bug::StaleLook => looked.is_none(),
            _ => queue,
        };

        if queue {
            fence(Ordering::SeqCst);
            self.pending.swap(true, Ordering::SeqCst);
        }
    }

    /// process_one_work(): clear the pending bit, full barrier, run.
    fn run_if_pending(&self) {
        let mut done = self.running.lock().unwrap();

        if self.bug == Bug::LatePending {
            if self.pending.load(Ordering::SeqCst) {
                drain(self, |node| done.push(node));
                self.pending.store(false, Ordering::SeqCst);
            }
        } else if self.pending.swap(false, Ordering::SeqCst) {
            fence(Ordering::SeqCst);
            drain(self, |node| done.push(node));
        }
    }
}

/// One CPU with a producer, its bound worker, and the unbound one that serves it when offline.
fn check(bug: Bug) {
    let mut builder = Builder::new();

    builder.preemption_bound = Some(3);
    builder.check(move || {
        let cpu = Arc::new(Cpu::new(bug));
        let bound = {
            let cpu = cpu.clone();
            thread::spawn(move || {
                if !cpu.offline.load(Ordering::Relaxed) {
                    cpu.run_if_pending();
                }
            })
        };
        let unbound = {
            let cpu = cpu.clone();
            thread::spawn(move || {
                cpu.offline.store(true, Ordering::Relaxed);
                cpu.run_if_pending();
            })
        };

        for node in 0..NODES {
            cpu.enqueue(node);
        }
        bound.join().unwrap();
        unbound.join().unwrap();

        // The workqueue serves what is pending, sooner or later, and nothing else.
        cpu.run_if_pending();
        let done = cpu.running.lock().unwrap();
        assert_eq!(
            *done,
            (0..NODES).collect::<Vec<_>>(),
            "each once, oldest first"
        );
    });
}

#[test]
fn every_bio_completes_once_and_in_order() {
    check(Bug::None);
}

#[test]
#[should_panic]
fn finds_a_lost_wakeup_of_the_producer() {
    check(Bug::StaleLook);
}

#[test]
#[should_panic]
fn finds_a_lost_wakeup_of_the_workqueue() {
    check(Bug::LatePending);
}

#[test]
#[should_panic]
fn finds_a_torn_take() {
    check(Bug::TornTake);
}

#[test]
#[should_panic]
fn finds_a_missing_release() {
    check(Bug::NoRelease);
}
