// SPDX-License-Identifier: GPL-2.0

//! Interleavings, with up to three preemptions, of a producer and a worker that goes to sleep, under
//! the C11 memory model. What runs is the kernel's source, over a queue whose orderings are those
//! that the trait asks for: that completion/worker.rs has the same ones is for readers to see. Each
//! property is also checked to be one that a bug would break: with what the source relies on taken
//! away, the model has to fail.

use dontcache_host::completion::{
    backlog::Backlog,
    batch::{
        idle,
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
use std::ops::ControlFlow;

const NODES: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// The worker looks for nodes without a barrier after it can be woken.
    NoBarrier,
    /// Waking has no barrier before the look at the worker's state.
    WeakWake,
    /// Nobody is woken.
    NoWake,
    /// The newest node is read and then taken, in two steps.
    TornTake,
    /// The newest node is compared and then replaced, in two steps.
    TornPush,
    /// What the producer wrote is not visible to who takes the node.
    Relaxed,
    /// Who takes the node does not look for what the producer wrote.
    NoAcquire,
}

struct Cpu {
    /// 0 for none, else the node's index plus 1, as all that follow.
    newest: AtomicUsize,
    /// Plain accesses, in the kernel too: loom complains if two threads have a node.
    next: [UnsafeCell<usize>; NODES],
    /// Whether the worker's task state is `TASK_IDLE`.
    asleep: AtomicBool,
    done: Mutex<Vec<usize>>,
    bug: Bug,
}

fn to(node: Option<usize>) -> usize {
    node.map_or(0, |n| n + 1)
}

// SAFETY: Nodes are indices.
unsafe impl Queue for Cpu {
    type Node = usize;

    fn newest(&self) -> Option<usize> {
        self.newest.load(Ordering::Relaxed).checked_sub(1)
    }

    fn replace_newest(&self, old: Option<usize>, new: usize) -> Result<(), Option<usize>> {
        if self.bug == Bug::TornPush {
            let now = self.newest.load(Ordering::SeqCst);

            if now != to(old) {
                return Err(now.checked_sub(1));
            }
            self.newest.store(to(Some(new)), Ordering::SeqCst);
            return Ok(());
        }

        let order = match self.bug {
            Bug::Relaxed => Ordering::Relaxed,
            _ => Ordering::Release,
        };

        self.newest
            .compare_exchange(to(old), to(Some(new)), order, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|now| now.checked_sub(1))
    }

    fn take_newest(&self) -> Option<usize> {
        if self.bug == Bug::TornTake {
            let old = self.newest.load(Ordering::SeqCst);

            self.newest.store(0, Ordering::SeqCst);
            return old.checked_sub(1);
        }

        let order = match self.bug {
            Bug::NoAcquire => Ordering::Relaxed,
            _ => Ordering::Acquire,
        };

        self.newest.swap(0, order).checked_sub(1)
    }

    fn next(&self, node: usize) -> Option<usize> {
        // SAFETY: loom checks that no other thread has the node.
        self.next[node].with(|next| unsafe { *next }).checked_sub(1)
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        // SAFETY: As above.
        self.next[node].with_mut(|link| unsafe { *link = to(next) });
    }

    /// Two of different lanes.
    fn device(&self, node: usize) -> usize {
        node % 2 << 6
    }

    fn wake(&self) {
        match self.bug {
            Bug::NoWake => return,
            Bug::WeakWake => (),
            _ => fence(Ordering::SeqCst),
        }
        // try_to_wake_up() leaves a task alone that is running.
        if self.asleep.load(Ordering::Relaxed) {
            self.asleep.store(false, Ordering::SeqCst);
        }
    }

    fn set_idle(&self) {
        self.asleep.store(true, Ordering::Relaxed);
    }

    fn set_running(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// The scheduler comes back only if somebody wakes the task.
    fn sleep(&self) {
        while self.asleep.load(Ordering::SeqCst) {
            // loom reports a loop that nobody ends.
            thread::yield_now();
        }
    }

    fn barrier(&self) {
        if self.bug != Bug::NoBarrier {
            fence(Ordering::SeqCst);
        }
    }
}

impl Cpu {
    fn new(bug: Bug) -> Self {
        Cpu {
            newest: AtomicUsize::new(0),
            next: core::array::from_fn(|_| UnsafeCell::new(0)),
            asleep: AtomicBool::new(false),
            done: Mutex::new(Vec::new()),
            bug,
        }
    }

    /// The worker's life until it has completed `nr` nodes.
    fn work(&self, nr: usize, budget: usize) {
        let mut backlog = Backlog::new();
        let mut done = 0;

        while done < nr {
            let run = backlog.run(self, budget, |node| {
                self.done.lock().unwrap().push(node);
                ControlFlow::Continue(())
            });

            done += run;
            // The kernel's ends never.
            if done < nr && backlog.is_empty() {
                idle(self);
            }
        }
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();

    builder.preemption_bound = Some(3);
    builder.check(f);
}

/// Bios of one CPU finish while the worker runs and goes to sleep.
fn check(bug: Bug, nr: usize, budget: usize) {
    model(move || {
        let cpu = Arc::new(Cpu::new(bug));
        let worker = {
            let cpu = cpu.clone();
            thread::spawn(move || cpu.work(nr, budget))
        };

        for node in 0..nr {
            push(&*cpu, node);
        }
        worker.join().unwrap();
        for device in 0..2 {
            let done = cpu.done.lock().unwrap();

            assert_eq!(
                done.iter()
                    .copied()
                    .filter(|node| node % 2 == device)
                    .collect::<Vec<_>>(),
                (0..nr)
                    .filter(|node| node % 2 == device)
                    .collect::<Vec<_>>(),
                "each once, of a device the oldest first"
            );
        }
    });
}

#[test]
fn every_bio_completes_once_and_in_order() {
    check(Bug::None, NODES, 64);
}

#[test]
fn every_bio_completes_with_a_small_budget() {
    check(Bug::None, NODES, 1);
}

#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn finds_a_missing_barrier_of_the_worker() {
    check(Bug::NoBarrier, 2, 64);
}

#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn finds_a_missing_barrier_of_the_waker() {
    check(Bug::WeakWake, 2, 64);
}

#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn finds_a_missing_wake_up() {
    check(Bug::NoWake, 2, 64);
}

#[test]
#[should_panic(expected = "each once, of a device the oldest first")]
fn finds_a_torn_take() {
    check(Bug::TornTake, 2, 64);
}

#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn finds_a_torn_push() {
    check(Bug::TornPush, 2, 64);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn finds_a_missing_release() {
    check(Bug::Relaxed, 2, 64);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn finds_a_missing_acquire() {
    check(Bug::NoAcquire, 2, 64);
}
