// SPDX-License-Identifier: GPL-2.0

//! What the worker of a batch completes in one run, and what it leaves for the next.
//!
//! Pure, see [`super::batch`].
//!
//! While no more than a budget of nodes wait, a run completes all of them, oldest first, whatever
//! device they are of. When more wait, they are sorted into lanes by their device, which take turns
//! run by run. So each device keeps its order, and one with a long queue delays one of another lane
//! by one run and no more. A run is over after a budget, or when its callback says that it has
//! taken long enough; a callback that sleeps delays all. What has come since the last run is looked
//! at before that, twice at most for each node; what has waited longer costs a run nothing.
//!
//! A device is what a node says: of multipath devices that is the path, so the order is one of each
//! path.

use super::batch::{
    self,
    Queue, //
};
use core::ops::ControlFlow;

/// How many nodes a run completes, at most. NAPI's weight, for the same reason.
pub const BUDGET: usize = 64;

/// How many lanes there are. Devices of one lane are as fair to each other as C's are.
pub const LANES: usize = 16;

/// The lane of a device: of a pointer, whose lowest bits are all alike.
const fn lane_of(device: usize) -> usize {
    ((device >> 6) ^ (device >> 10) ^ (device >> 14)) % LANES
}

/// A list of nodes, oldest first.
struct List<N> {
    /// The oldest and the newest.
    ends: Option<(N, N)>,
}

impl<N: Copy + PartialEq> List<N> {
    fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    fn push<Q: Queue<Node = N>>(&mut self, queue: &Q, node: N) {
        let oldest = match self.ends {
            Some((oldest, newest)) => {
                queue.set_next(newest, Some(node));
                oldest
            }
            None => node,
        };

        self.ends = Some((oldest, node));
    }

    /// Takes the oldest node, unlinked.
    fn pop<Q: Queue<Node = N>>(&mut self, queue: &Q) -> Option<N> {
        let (oldest, newest) = self.ends?;

        self.ends = queue.next(oldest).map(|next| (next, newest));
        queue.set_next(oldest, None);
        Some(oldest)
    }
}

/// Nodes that were taken and are not completed yet. Belongs to one worker.
///
/// # Invariants
///
/// The lanes have `nr` nodes, each that of its device.
pub struct Backlog<N> {
    lanes: [List<N>; LANES],
    nr: usize,
    /// Where the search for the next lane starts.
    turn: usize,
}

impl<N: Copy + PartialEq> Backlog<N> {
    /// An empty backlog.
    pub const fn new() -> Self {
        // INVARIANT: All lanes are empty.
        Self {
            lanes: [const { List { ends: None } }; LANES],
            nr: 0,
            turn: 0,
        }
    }

    /// Whether all nodes that were taken have been completed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.nr == 0
    }

    /// Takes what is in `queue`, and hands up to `budget` nodes, not 0, to `complete`, until that
    /// says that it was the last one for now; returns how many.
    ///
    /// A node belongs to `complete` when it is handed over: it may be freed, or pushed again.
    #[inline]
    pub fn run<Q: Queue<Node = N>>(
        &mut self,
        queue: &Q,
        budget: usize,
        mut complete: impl FnMut(N) -> ControlFlow<()>,
    ) -> usize {
        let mut nr = 0usize;

        if let Some((mut node, many)) = batch::take(queue) {
            if !self.is_empty() || many > budget {
                self.sort(queue, node);
            } else {
                // Mostly. Nothing of it is in a lane.
                loop {
                    let next = queue.next(node);

                    queue.set_next(node, None);
                    nr = nr.wrapping_add(1);

                    let over = complete(node).is_break();
                    let Some(next) = next else {
                        return nr;
                    };

                    if over {
                        self.sort(queue, next);
                        return nr;
                    }
                    node = next;
                }
            }
        }
        if self.is_empty() {
            return 0;
        }

        let lane = self.next_lane();

        while let Some(node) = lane.pop(queue) {
            nr = nr.wrapping_add(1);
            if complete(node).is_break() || nr == budget {
                break;
            }
        }
        // INVARIANT: They are gone from a lane.
        self.nr = self.nr.saturating_sub(nr);
        nr
    }

    /// Puts nodes into the lanes of their devices, from `oldest` on.
    #[cold]
    fn sort<Q: Queue<Node = N>>(&mut self, queue: &Q, oldest: N) {
        let mut newer = Some(oldest);

        while let Some(node) = newer {
            newer = queue.next(node);
            queue.set_next(node, None);
            self.lanes[lane_of(queue.device(node))].push(queue, node);
            // INVARIANT: It is in a lane now.
            self.nr = self.nr.saturating_add(1);
        }
    }

    /// The lane whose turn it is, of those that are not empty.
    #[cold]
    fn next_lane(&mut self) -> &mut List<N> {
        let mut at = self.turn;

        for _ in 1..LANES {
            if !self.lanes[at % LANES].is_empty() {
                break;
            }
            at = at.wrapping_add(1);
        }
        self.turn = at.wrapping_add(1);
        &mut self.lanes[at % LANES]
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
    /// Two devices of different lanes.
    const FIRST: usize = 1 << 6;
    const OTHER: usize = 2 << 6;

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
                self.queue.push(device, self.pushed.get());
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
                FIRST => 0,
                OTHER => 1,
                _ => 2,
            }) {
                *nr += 1;
            }
            ControlFlow::Continue(())
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

            queue.add(FIRST, pushed);
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

            queue.add(FIRST, 20);
            while expected < 40 {
                let nr = backlog.run(&*queue, budget, |node| {
                    assert_eq!(node, expected);
                    expected += 1;
                    ControlFlow::Continue(())
                });

                assert!(nr > 0);
                if queue.pushed.get() == 20 {
                    queue.add(FIRST, 20);
                }
            }
            assert!(backlog.is_empty());
        }
    }

    #[test]
    fn long_queue_delays_another_device_by_one_run() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();

        queue.add(FIRST, 20);
        queue.add(OTHER, 1);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 1, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        // It comes while the other's are being completed.
        queue.add(OTHER, 1);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 1, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
    }

    #[test]
    fn budget_completes_all_devices_at_once() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();

        queue.add(FIRST, 2);
        queue.add(OTHER, 2);
        assert_eq!(run(&mut backlog, &queue, 4), [2, 2, 0]);
    }

    #[test]
    fn two_long_queues_take_turns() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();

        queue.add(FIRST, 12);
        queue.add(OTHER, 8);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 4, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [0, 4, 0]);
        assert_eq!(run(&mut backlog, &queue, 4), [4, 0, 0]);
        assert!(backlog.is_empty());
    }

    #[test]
    fn devices_keep_their_order_and_lanes_take_turns() {
        // Each lane has two devices, which share it.
        const DEVICES: usize = 2 * LANES;

        let queue = TestQueue::new();
        let mut backlog = Backlog::new();
        let mut last = [None; DEVICES];

        for node in 0..NODES {
            queue.add((node % DEVICES) << 6, 1);
        }
        for run in 0..LANES {
            let nr = backlog.run(&*queue, NODES / LANES, |node| {
                let device = queue.device(node) >> 6;

                assert_eq!(lane_of(queue.device(node)), (lane_of(0) + run) % LANES);
                if let Some(last) = last.get_mut(device) {
                    assert!(*last < Some(node));
                    *last = Some(node);
                }
                ControlFlow::Continue(())
            });

            assert_eq!(nr, NODES / LANES);
        }
        assert!(backlog.is_empty());
    }

    #[test]
    fn callback_ends_a_run_and_the_rest_takes_turns() {
        for before in [0, 20] {
            let queue = TestQueue::new();
            let mut backlog = Backlog::new();
            let mut others_first = 0;

            // If there are any, these are in lanes already.
            queue.add(FIRST, before);
            let [mut first, ..] = run(&mut backlog, &queue, 8);

            queue.add(FIRST, 6);
            queue.add(OTHER, 2);
            for _ in 0..5 {
                assert_eq!(
                    backlog.run(&*queue, BUDGET, |node| {
                        if queue.device(node) == OTHER {
                            others_first += 1;
                        }
                        ControlFlow::Break(())
                    }),
                    1
                );
            }
            assert_eq!(others_first, 2);
            first += 3;
            while !backlog.is_empty() {
                let [nr, ..] = run(&mut backlog, &queue, 4);

                assert!(nr > 0);
                first += nr;
            }
            assert_eq!(first, before + 6);
        }
    }

    #[test]
    fn every_device_has_a_lane() {
        for bit in 0..usize::BITS {
            for device in [1 << bit, usize::MAX >> bit, usize::MAX << bit] {
                assert!(lane_of(device) < LANES);
            }
        }
        // Neighbours in memory, of the sizes that they come in: most have a lane of their own.
        for first in [0, 0x5a5_a540] {
            let used = [1 << 10, 1472, 1984, 2048, 4096].map(|size| {
                (0..LANES)
                    .fold(0u32, |used, at| used | 1 << lane_of(first + at * size))
                    .count_ones()
            });

            assert!(used.iter().sum::<u32>() >= 60);
        }
    }

    #[test]
    fn callback_may_push_the_node_again() {
        let queue = TestQueue::new();
        let mut backlog = Backlog::new();

        queue.add(FIRST, 3);
        assert_eq!(
            backlog.run(&*queue, BUDGET, |node| {
                if node == 0 {
                    batch::push(&*queue, node);
                }
                ControlFlow::Continue(())
            }),
            3
        );
        assert_eq!(queue.woken.get(), 2);
        assert_eq!(run(&mut backlog, &queue, BUDGET), [1, 0, 0]);
    }
}
