// SPDX-License-Identifier: GPL-2.0

//! All interleavings of a producer, a worker that goes to sleep, and a task that begins to wait
//! for writeback, under the C11 memory model. Each property is also checked to be one that a bug
//! would break: with the bug put in, the model has to fail.

use dontcache_host::{
    backlog::Backlog,
    batch::{
        push,
        Queue, //
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
    /// The producer decides by a look before its exchange whether to wake the worker.
    StaleLook,
    /// The worker looks for bios before it can be woken, not after.
    EarlyLook,
    /// The newest node is read and then taken, in two steps.
    TornTake,
    /// The oldest node is forgotten after the exchange, not before.
    LateReset,
    /// The worker takes a missing link for the end.
    NoWait,
    /// What the producer wrote is not visible to who takes the node.
    NoRelease,
    /// Who waits for writeback does not look whether a worker gathers.
    NoHurry,
    /// The worker begins to gather without a look at who waits.
    NoLookAtWaiters,
}

struct Cpu {
    /// 0 for none, else the node's index plus 1, as all that follow.
    newest: AtomicUsize,
    oldest: AtomicUsize,
    next: [AtomicUsize; NODES],
    /// What the producer writes to a node before it is finished.
    data: [UnsafeCell<usize>; NODES],
    /// Whether the batch's state is `BIO_TASK_GATHER`, which implies its bit in the mask.
    gathers: AtomicBool,
    /// Whether the worker's task state is `TASK_IDLE`.
    asleep: AtomicBool,
    waiters: AtomicUsize,
    done: Mutex<Vec<usize>>,
    bug: Bug,
}

fn to(node: Option<usize>) -> usize {
    node.map_or(0, |n| n + 1)
}

impl Queue for Cpu {
    type Node = usize;

    fn newest(&self) -> Option<usize> {
        self.newest.load(Ordering::Relaxed).checked_sub(1)
    }

    fn swap_newest(&self, node: Option<usize>) -> Option<usize> {
        if self.bug == Bug::TornTake && node.is_none() {
            let old = self.newest.load(Ordering::SeqCst);
            self.newest.store(0, Ordering::SeqCst);
            return old.checked_sub(1);
        }

        let order = match self.bug {
            Bug::NoRelease => Ordering::Relaxed,
            _ => Ordering::AcqRel,
        };
        let old = self.newest.swap(to(node), order);

        // What makes the kernel's a full barrier.
        if self.bug != Bug::NoRelease {
            fence(Ordering::SeqCst);
        }
        if self.bug == Bug::LateReset && node.is_none() {
            self.oldest.store(0, Ordering::Relaxed);
        }
        old.checked_sub(1)
    }

    fn oldest(&self) -> Option<usize> {
        self.oldest.load(Ordering::Relaxed).checked_sub(1)
    }

    fn set_oldest(&self, node: Option<usize>) {
        if self.bug != Bug::LateReset || node.is_some() {
            self.oldest.store(to(node), Ordering::Relaxed);
        }
    }

    fn next(&self, node: usize) -> Option<usize> {
        self.next[node].load(Ordering::Relaxed).checked_sub(1)
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        self.next[node].store(to(next), Ordering::Relaxed);
    }

    fn device(&self, _: usize) -> usize {
        0
    }

    fn relax(&self) {
        assert!(self.bug != Bug::NoWait, "a node is lost");
        thread::yield_now();
    }
}

impl Cpu {
    fn new(bug: Bug) -> Self {
        Cpu {
            newest: AtomicUsize::new(0),
            oldest: AtomicUsize::new(0),
            next: core::array::from_fn(|_| AtomicUsize::new(0)),
            data: core::array::from_fn(|_| UnsafeCell::new(0)),
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
        // SAFETY: Until it is pushed the node is the producer's, loom checks that.
        self.data[node].with_mut(|data| unsafe { *data = node + 1 });

        let looked = self.newest();
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

        Backlog::new().run(self, NODES, |node| {
            // SAFETY: Taken, the node is the worker's, loom checks that.
            assert_eq!(self.data[node].with(|data| unsafe { *data }), node + 1);
            done.push(node);
        });
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

            let early = self.newest().is_none();

            self.asleep.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);

            let sleep = if gather {
                self.gathers.load(Ordering::Relaxed)
            } else if self.bug == Bug::EarlyLook {
                early
            } else {
                self.newest().is_none()
            };

            if sleep {
                return;
            }
            self.asleep.store(false, Ordering::SeqCst);
            gather = false;
            thread::yield_now();
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
fn finds_a_late_reset() {
    check_idle(Bug::LateReset);
}

#[test]
#[should_panic]
fn finds_a_worker_that_does_not_wait_for_a_link() {
    check_idle(Bug::NoWait);
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
