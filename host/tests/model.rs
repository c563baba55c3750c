// SPDX-License-Identifier: GPL-2.0

//! All interleavings of a producer, a worker that goes to sleep, and a task that begins to wait
//! for writeback, under the C11 memory model. Each property is also checked to be one that a bug
//! would break: with the bug put in, the model has to fail.

use dontcache_host::{
    backlog::Backlog,
    batch::{
        push,
        Stack, //
    },
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

const NODES: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// The producer decides by its first look at the head whether to wake the worker.
    StaleLook,
    /// The worker looks for bios before it can be woken, not after.
    EarlyLook,
    /// The head is read and then emptied, in two steps.
    TornTake,
    /// The link of a node is not visible to who takes the node.
    NoRelease,
    /// Who waits for writeback does not look whether a worker gathers.
    NoHurry,
    /// The worker begins to gather without a look at who waits.
    NoLookAtWaiters,
}

struct Cpu {
    /// 0 for empty, else the node's index plus 1.
    head: AtomicUsize,
    next: [UnsafeCell<usize>; NODES],
    /// Whether the batch's state is `BIO_TASK_GATHER`, which implies its bit in the mask.
    gathers: AtomicBool,
    /// Whether the worker's task state is `TASK_IDLE`.
    asleep: AtomicBool,
    waiters: AtomicUsize,
    done: Mutex<Vec<usize>>,
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
            _ => Ordering::AcqRel,
        };
        let ret =
            self.head
                .compare_exchange(old.map_or(0, |n| n + 1), new + 1, order, Ordering::Relaxed);

        // What makes the kernel's a full barrier.
        if self.bug != Bug::NoRelease {
            fence(Ordering::SeqCst);
        }
        ret.map(|_| ()).map_err(|now| now.checked_sub(1))
    }

    fn take(&self) -> Option<usize> {
        if self.bug == Bug::TornTake {
            let head = self.head.load(Ordering::Acquire);
            self.head.store(0, Ordering::Relaxed);
            return head.checked_sub(1);
        }
        self.head.swap(0, Ordering::Acquire).checked_sub(1)
    }

    // SAFETY: (of both) A node belongs to who pushes or takes it, loom checks that.
    fn next(&self, node: usize) -> Option<usize> {
        self.next[node].with(|next| unsafe { *next }).checked_sub(1)
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        self.next[node].with_mut(|to| unsafe { *to = next.map_or(0, |n| n + 1) });
    }

    fn device(&self, _: usize) -> usize {
        0
    }
}

impl Cpu {
    fn new(bug: Bug) -> Self {
        Cpu {
            head: AtomicUsize::new(0),
            next: core::array::from_fn(|_| UnsafeCell::new(0)),
            gathers: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            waiters: AtomicUsize::new(0),
            done: Mutex::new(Vec::new()),
            bug,
        }
    }

    /// wake_up_process(): a full barrier, then the look at the task's state.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Batch::enqueue()
    fn enqueue(&self, node: usize) {
        let looked = self.peek();
        let edge = push(self, node);
        let edge = match self.bug {
            Bug::StaleLook => looked.is_none(),
            _ => edge,
        };

        if edge && !self.gathers.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    fn run(&self) {
        let mut done = self.done.lock().unwrap();

        Backlog::new().run(self, NODES, |node| done.push(node));
    }

    /// Batch::work() until the worker sleeps: it gathers the first time, if it may.
    fn work(&self, mut gather: bool) {
        loop {
            self.run();
            if gather {
                self.gathers.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if self.bug != Bug::NoLookAtWaiters && self.waiters.load(Ordering::Relaxed) > 0 {
                    gather = false;
                }
            }
            if !gather {
                self.gathers.store(false, Ordering::Relaxed);
            }

            let early = self.peek().is_none();

            self.asleep.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);

            let sleep = if gather {
                self.gathers.load(Ordering::Relaxed)
            } else if self.bug == Bug::EarlyLook {
                early
            } else {
                self.peek().is_none()
            };

            if sleep {
                return;
            }
            self.asleep.store(false, Ordering::SeqCst);
            gather = false;
        }
    }

    /// bio_task_wait_begin(), bio_task_hurry()
    fn wait(&self) {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.bug != Bug::NoHurry && self.gathers.load(Ordering::Relaxed) {
            self.gathers.store(false, Ordering::Relaxed);
            self.wake();
        }
    }

    /// What the scheduler does with a worker that was woken after it went to sleep.
    fn run_if_woken(&self) {
        if !self.asleep.load(Ordering::SeqCst) {
            self.work(false);
        }
    }

    fn check_all_done(&self) {
        assert_eq!(
            *self.done.lock().unwrap(),
            (0..NODES).collect::<Vec<_>>(),
            "each once, oldest first"
        );
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();

    builder.preemption_bound = Some(4);
    builder.check(f);
}

/// Bios finish while the worker goes to sleep.
fn check_idle(bug: Bug) {
    model(move || {
        let cpu = Arc::new(Cpu::new(bug));
        let worker = {
            let cpu = cpu.clone();
            thread::spawn(move || cpu.work(false))
        };

        for node in 0..NODES {
            cpu.enqueue(node);
        }
        worker.join().unwrap();
        cpu.run_if_woken();
        cpu.check_all_done();
    });
}

/// Bios finish and a task begins to wait while the worker begins to gather, and no timer fires.
fn check_gather(bug: Bug) {
    model(move || {
        let cpu = Arc::new(Cpu::new(bug));
        let worker = {
            let cpu = cpu.clone();
            thread::spawn(move || cpu.work(true))
        };
        let waiter = {
            let cpu = cpu.clone();
            thread::spawn(move || cpu.wait())
        };

        for node in 0..NODES {
            cpu.enqueue(node);
        }
        worker.join().unwrap();
        waiter.join().unwrap();
        cpu.run_if_woken();
        cpu.check_all_done();
    });
}

#[test]
fn every_bio_completes_once_and_in_order() {
    check_idle(Bug::None);
}

#[test]
fn nobody_waits_for_a_worker_that_gathers() {
    check_gather(Bug::None);
}

#[test]
#[should_panic]
fn finds_a_lost_wakeup_of_the_producer() {
    check_idle(Bug::StaleLook);
}

#[test]
#[should_panic]
fn finds_a_lost_wakeup_of_the_worker() {
    check_idle(Bug::EarlyLook);
}

#[test]
#[should_panic]
fn finds_a_torn_take() {
    check_idle(Bug::TornTake);
}

#[test]
#[should_panic]
fn finds_a_missing_release() {
    check_idle(Bug::NoRelease);
}

#[test]
#[should_panic]
fn finds_a_waiter_that_does_not_hurry() {
    check_gather(Bug::NoHurry);
}

#[test]
#[should_panic]
fn finds_a_worker_that_does_not_look_for_waiters() {
    check_gather(Bug::NoLookAtWaiters);
}
