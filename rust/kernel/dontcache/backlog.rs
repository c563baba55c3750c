// SPDX-License-Identifier: GPL-2.0

//! What the worker of a batch completes in one run, and what it leaves for the next.
//!
//! Pure, see [`batch`].
//!
//! A run completes at most a budget of nodes. While no more than that wait, they are completed in
//! the order in which they came, whatever device they are of. When more wait, the rest is sorted
//! into lanes, one for each device, which take turns run by run. So a device with a long queue, or
//! with callbacks that take long or sleep, delays another device's node by one run and no more,
//! however many of its own wait.

use super::batch::{
    self,
    Queue, //
};

/// How many nodes a run completes, at most. NAPI's weight, for the same reason.
pub const BUDGET: usize = 64;

/// How many devices can have a lane of their own at a time. More than that share.
pub const LANES: usize = 8;

/// Nodes that wait for a later run, oldest first.
struct Lane<N> {
    device: usize,
    /// The oldest and the newest.
    ends: Option<(N, N)>,
}

/// Nodes that were taken and are not completed yet. Belongs to one worker.
///
/// # Invariants
///
/// `waiting` is the number of lanes that are not empty.
pub struct Backlog<N> {
    lanes: [Lane<N>; LANES],
    waiting: usize,
    /// Where the search for the next lane starts.
    turn: usize,
    /// Whose nodes the last run completed last, if it left others.
    last: usize,
}

impl<N: Copy + PartialEq> Backlog<N> {
    /// An empty backlog.
    pub const fn new() -> Self {
        // INVARIANT: All lanes are empty.
        Self {
            lanes: [const {
                Lane {
                    device: 0,
                    ends: None,
                }
            }; LANES],
            waiting: 0,
            turn: 0,
            last: 0,
        }
    }

    /// Whether all nodes that were taken have been completed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Takes what is in `queue`, and hands up to `budget` nodes to `complete`; returns how many.
    ///
    /// A node belongs to `complete` when it is handed over: it may be freed, or pushed again.
    #[inline]
    pub fn run<Q: Queue<Node = N>>(
        &mut self,
        queue: &Q,
        budget: usize,
        mut complete: impl FnMut(N),
    ) -> usize {
        let taken = batch::take(queue);

        if self.waiting != 0 {
            if let Some((first, last)) = taken {
                self.sort(queue, first, last);
            }
            return self.run_lane(queue, budget, complete);
        }

        let Some((mut node, last)) = taken else {
            return 0;
        };
        let mut left = budget;

        // `node` may be gone once it is handed over, and callbacks expect it unlinked.
        while let Some(next) = batch::next(queue, node, last) {
            queue.set_next(node, None);
            left = left.wrapping_sub(1);
            if left == 0 {
                self.last = queue.device(node);
                complete(node);
                self.sort(queue, next, last);
                return budget;
            }
            complete(node);
            node = next;
        }
        complete(node);

        budget.wrapping_sub(left).wrapping_add(1)
    }

    /// Appends a chain to the lanes of its nodes' devices.
    #[cold]
    fn sort<Q: Queue<Node = N>>(&mut self, queue: &Q, first: N, last: N) {
        let mut rest = Some(first);

        while let Some(first) = rest {
            let device = queue.device(first);
            let mut end = first;

            // Mostly all are of one device: whole pieces of the chain are appended.
            rest = batch::next(queue, end, last);
            while let Some(node) = rest {
                if queue.device(node) != device {
                    break;
                }
                end = node;
                rest = batch::next(queue, end, last);
            }
            queue.set_next(end, None);
            self.append(queue, device, first, end);
        }
    }

    /// Appends a chain of one device to its lane.
    fn append<Q: Queue<Node = N>>(&mut self, queue: &Q, device: usize, first: N, end: N) {
        let Some(lane) = self.lane_of(device) else {
            return;
        };

        if let Some((oldest, newest)) = lane.ends {
            queue.set_next(newest, Some(first));
            lane.ends = Some((oldest, end));
        } else {
            lane.device = device;
            lane.ends = Some((first, end));
            // INVARIANT: This lane was empty.
            self.waiting = self.waiting.wrapping_add(1);
        }
    }

    /// The lane of a device, an empty one, or the one that it shares; never `None`.
    fn lane_of(&mut self, device: usize) -> Option<&mut Lane<N>> {
        let own = |lane: &Lane<N>| lane.ends.is_some() && lane.device == device;
        let at = self
            .lanes
            .iter()
            .position(own)
            .or_else(|| self.lanes.iter().position(|lane| lane.ends.is_none()))
            // Devices are pointers, whose low bits are all alike.
            .unwrap_or((device >> 8) % LANES);

        self.lanes.get_mut(at)
    }

    /// Completes up to `budget` nodes of the lane whose turn it is.
    #[cold]
    fn run_lane<Q: Queue<Node = N>>(
        &mut self,
        queue: &Q,
        budget: usize,
        mut complete: impl FnMut(N),
    ) -> usize {
        let order = (0..LANES).map(|i| self.turn.wrapping_add(i) % LANES);
        let waits = |at: &usize| self.lanes.get(*at).is_some_and(|lane| lane.ends.is_some());
        let other = |at: &usize| {
            self.lanes
                .get(*at)
                .is_some_and(|lane| lane.device != self.last)
        };
        let mut all = order.filter(waits);
        let Some(at) = all.clone().find(other).or_else(|| all.next()) else {
            return 0;
        };
        let Some(lane) = self.lanes.get_mut(at) else {
            return 0;
        };
        let mut ends = lane.ends.take();
        let mut nr = 0usize;

        self.last = lane.device;
        self.turn = at.wrapping_add(1);
        while let Some((oldest, newest)) = ends {
            if nr == budget {
                break;
            }
            ends = batch::next(queue, oldest, newest).map(|next| (next, newest));
            queue.set_next(oldest, None);
            complete(oldest);
            nr = nr.wrapping_add(1);
        }
        lane.ends = ends;
        if ends.is_none() {
            // INVARIANT: This lane was not empty, and is now.
            self.waiting = self.waiting.wrapping_sub(1);
        }

        nr
    }
}

impl<N: Copy + PartialEq> Default for Backlog<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg_attr(
    CONFIG_DONTCACHE_RUST_KUNIT_TEST,
    macros::kunit_tests(dontcache_backlog)
)]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::{
        super::test_queue, //
        *,
    };
    use core::{
        cell::Cell,
        ops::Deref, //
    };

    const NODES: usize = 48;

    /// A queue that numbers its nodes as they are pushed.
    struct TestQueue {
        queue: test_queue::TestQueue<NODES>,
        pushed: Cell<usize>,
    }

    impl TestQueue {
        const fn new() -> Self {
            Self {
                queue: test_queue::TestQueue::new(),
                pushed: Cell::new(0),
            }
        }

        /// Pushes `nr` nodes of `device`.
        fn add(&self, device: usize, nr: usize) {
            for _ in 0..nr {
                let _ = self.queue.push(device, self.pushed.get());
                self.pushed.set(self.pushed.get() + 1);
            }
        }
    }

    impl Deref for TestQueue {
        type Target = test_queue::TestQueue<NODES>;

        fn deref(&self) -> &Self::Target {
            &self.queue
        }
    }

    /// One run; returns how many nodes of device 1, of device 2, and of others it completed.
    fn run(backlog: &mut Backlog<usize>, queue: &TestQueue, budget: usize) -> [usize; 3] {
        let mut of = [0; 3];
        let nr = backlog.run(&**queue, budget, |node| {
            assert!(queue.next(node).is_none());
            if let Some(nr) = of.get_mut(match queue.device(node) {
                1 => 0,
                2 => 1,
                _ => 2,
            }) {
                *nr += 1;
            }
        });

        assert_eq!(nr, of.iter().sum());
        of
    }

    #[test]
    fn run_completes_a_budget_at_most() {
        //   pushed  budget  runs
        let cases = [
            (0usize, 4usize, 0usize),
            (1, 4, 1),
            (3, 4, 1),
            (4, 4, 1),
            (5, 4, 2),
            (8, 4, 2),
            (9, 4, 3),
            (NODES, 1, NODES),
            (NODES, NODES, 1),
        ];

        for (pushed, budget, runs) in cases {
            let queue = TestQueue::new();
            let mut backlog = Backlog::new();
            let mut done = 0;
            let mut nr_runs = 0;

            queue.add(1, pushed);
            loop {
                let [nr, ..] = run(&mut backlog, &queue, budget);

                if nr == 0 {
                    break;
                }
                assert!(nr <= budget);
                done += nr;
                nr_runs += 1;
                assert_eq!(backlog.is_empty(), done == pushed);
            }
            assert_eq!(done, pushed);
            assert_eq!(nr_runs, runs);
        }
    }

    #[test]
    fn one_device_keeps_its_order() {
        for budget in 1..NODES {
            let queue = TestQueue::new();
            let mut backlog = Backlog::new();
            let mut expected = 0;

            queue.add(1, 20);
            while expected < 40 {
                let nr = backlog.run(&*queue, budget, |node| {
                    assert_eq!(node, expected);
                    expected += 1;
                });

                assert!(nr > 0);
                if queue.pushed.get() == 20 {
                    queue.add(1, 20);
                }
            }
            assert!(backlog.is_empty());
        }
    }

    #[test]
    fn long_queue_delays_another_device_by_one_run() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();

        queue.add(1, 20);
        queue.add(2, 1);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 1, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        // It comes while the other's are being completed.
        queue.add(2, 1);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 1, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
    }

    #[test]
    fn two_long_queues_take_turns() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();

        queue.add(1, 12);
        queue.add(2, 8);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 4, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 4, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert!(backlog.is_empty());
    }

    #[test]
    fn more_devices_than_lanes_share_them() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();
        let mut done = 0;

        for device in 0..2 * LANES {
            queue.add(device << 8, 2);
        }
        for _ in 0..2 * LANES {
            done += backlog.run(&*queue, 4, |_| ());
        }
        assert_eq!(done, 4 * LANES);
        assert!(backlog.is_empty());
    }

    #[test]
    fn callback_may_push_the_node_again() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();
        let mut wanted = false;

        queue.add(1, 3);
        assert_eq!(
            backlog.run(&*queue, BUDGET, |node| {
                if node == 0 {
                    wanted = batch::push(&*queue, node);
                }
            }),
            3
        );
        assert!(wanted);
        assert_eq!(run(&mut backlog, &queue, BUDGET), [1, 0, 0]);
    }
}
