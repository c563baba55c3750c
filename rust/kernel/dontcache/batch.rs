// SPDX-License-Identifier: GPL-2.0

//! The batch of finished bios of one CPU: a queue that any CPU may add to, and that its worker
//! takes from whatever CPU it runs on.
//!
//! Pure: knows neither bios nor threads, so KUnit, a host test, proptest and loom all run this
//! source.
//!
//! # State machine
//!
//! The word that names the newest node is the whole state: empty, or not.
//!
//! ```text
//!             push(): true, the caller sees to it that the worker runs
//!   empty  ------------------------------------------------>  not empty  --+ push(): false
//!          <------------------------------------------------             <-+
//!             take(): one exchange, by the worker
//! ```
//!
//! A producer exchanges the newest node for its own, and then links the two, or names its own as
//! the oldest. So nodes are linked in the order in which they are completed, and an addition costs
//! one atomic operation that cannot fail. The price is a moment between exchange and link: a worker
//! that gets there first waits for the link. Producers cannot be preempted in between, and are on
//! the worker's own CPU unless that is going away or is isolated, so it does not see that moment.
//!
//! The worker looks at the newest node once more between the moment from which it can be woken and
//! going to sleep, and the exchange is a full barrier. So either that look sees the new node, or
//! the waking sees the sleeper: no node stays behind, and none has to wait for a CPU to be dead.
//!
//! A CPU that goes away changes nothing here. The scheduler moves the worker to another CPU,
//! which takes the queue as the old one would have done.
//!
//! The algorithm is that of the intrusive multi-producer queue of Dmitry Vyukov, without its stub
//! node: the worker takes all nodes, so no last one has to stay.

/// What a batch is made of: two words, and a link in every node.
///
/// All of them are accessed by several threads at a time: implementations use `READ_ONCE()` and
/// `WRITE_ONCE()` but where more is stated.
pub trait Queue {
    /// A handle on one node, cheap to copy.
    type Node: Copy + PartialEq;

    /// The newest node.
    fn newest(&self) -> Option<Self::Node>;

    /// Replaces the newest node, and returns what it was.
    ///
    /// Fully ordered: who takes a node sees all that its producer wrote before, and what a
    /// producer reads after that is no older than its node.
    fn swap_newest(&self, node: Option<Self::Node>) -> Option<Self::Node>;

    /// The oldest node, if its producer has come to say so.
    fn oldest(&self) -> Option<Self::Node>;

    /// Sets the oldest node.
    fn set_oldest(&self, node: Option<Self::Node>);

    /// The link of a node that the caller owns.
    fn next(&self, node: Self::Node) -> Option<Self::Node>;

    /// Sets the link of a node that the caller owns, or that it got as the newest but one.
    fn set_next(&self, node: Self::Node, next: Option<Self::Node>);

    /// What a node that the caller owns came from: equal for nodes of one device.
    fn device(&self, node: Self::Node) -> usize;

    /// Passes the time until a producer has linked its node.
    fn relax(&self);
}

/// Adds `node` to `queue`; the caller sees to it that the worker runs if this returns `true`.
///
/// Not to be preempted by the worker.
#[inline]
#[must_use = "a node added to an empty batch is lost unless the worker runs"]
pub fn push<Q: Queue>(queue: &Q, node: Q::Node) -> bool {
    queue.set_next(node, None);
    match queue.swap_newest(Some(node)) {
        Some(older) => {
            queue.set_next(older, Some(node));
            false
        }
        None => {
            queue.set_oldest(Some(node));
            true
        }
    }
}

/// Takes all nodes of `queue`; returns the oldest and the newest of them.
///
/// One caller at a time. Nothing is taken if the producer of the oldest node has not come to say
/// so: it will see to it that the worker runs.
#[inline]
pub fn take<Q: Queue>(queue: &Q) -> Option<(Q::Node, Q::Node)> {
    // Mostly there is nothing when a worker looks again, and no need to own the cache line.
    queue.newest()?;

    let oldest = queue.oldest()?;

    // Before the queue is empty: the next to set it finds it empty.
    queue.set_oldest(None);
    Some((oldest, queue.swap_newest(None)?))
}

/// The node after `node` in a chain that was taken and ends with `last`.
#[inline]
pub fn next<Q: Queue>(queue: &Q, node: Q::Node, last: Q::Node) -> Option<Q::Node> {
    match queue.next(node) {
        None if node != last => Some(wait_for_link(queue, node)),
        next => next,
    }
}

#[cold]
fn wait_for_link<Q: Queue>(queue: &Q, node: Q::Node) -> Q::Node {
    loop {
        queue.relax();
        if let Some(next) = queue.next(node) {
            return next;
        }
    }
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_batch))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::{
        super::test_queue::{
            self,
            Meet, //
        },
        *,
    };

    const NODES: usize = 8;

    type TestQueue = test_queue::TestQueue<NODES>;

    /// Pushes `0..nr`, and says whether just the first of them asked for the worker.
    fn fill(queue: &TestQueue, nr: usize) -> bool {
        (0..nr).fold(true, |ok, node| ok & (push(queue, node) == (node == 0)))
    }

    /// Takes all of `queue`, and says whether that gave `expected`.
    fn gives(queue: &TestQueue, mut expected: impl Iterator<Item = usize>) -> bool {
        let Some((oldest, last)) = take(queue) else {
            return expected.next().is_none();
        };
        let mut node = Some(oldest);

        while let Some(n) = node {
            if expected.next() != Some(n) {
                return false;
            }
            node = next(queue, n, last);
        }
        expected.next().is_none() && queue.newest().is_none() && queue.oldest().is_none()
    }

    #[test]
    fn only_the_first_push_asks_for_the_worker() {
        for nr in 0..=NODES {
            assert!(fill(&TestQueue::default(), nr));
        }
    }

    #[test]
    fn gives_every_node_once_and_oldest_first() {
        for nr in 0..=NODES {
            let queue = TestQueue::default();

            assert!(fill(&queue, nr));
            assert!(gives(&queue, 0..nr));
            assert!(gives(&queue, 0..0));
        }
    }

    #[test]
    fn asks_for_the_worker_again_after_each_take() {
        let queue = TestQueue::default();

        for nr in 1..=NODES {
            assert!(fill(&queue, nr));
            assert!(gives(&queue, 0..nr));
        }
    }

    #[test]
    fn interrupt_in_the_first_push_leaves_the_waking_to_it() {
        let queue = TestQueue::default();

        queue.meet.set(Meet::Push(1));
        assert!(push(&queue, 0));
        assert!(!queue.met.get());
        assert!(gives(&queue, 0..2));
    }

    #[test]
    fn interrupt_in_a_push_is_linked_behind_it() {
        let queue = TestQueue::default();

        assert!(fill(&queue, 2));
        queue.meet.set(Meet::Push(3));
        assert!(!push(&queue, 2));
        assert!(!queue.met.get());
        assert!(gives(&queue, 0..4));
    }

    #[test]
    fn take_in_the_first_push_takes_nothing() {
        let queue = TestQueue::default();

        queue.meet.set(Meet::Take);
        assert!(push(&queue, 0));
        assert!(!queue.met.get());
        assert!(gives(&queue, 0..1));
    }

    #[test]
    fn push_right_after_a_take_asks_for_the_worker() {
        let queue = TestQueue::default();

        assert!(fill(&queue, 3));
        queue.meet.set(Meet::Push(3));
        assert_eq!(take(&queue), Some((0, 2)));
        assert!(queue.met.get());
        assert_eq!(next(&queue, 2, 2), None);
        assert!(gives(&queue, 3..4));
    }

    #[test]
    fn worker_waits_for_a_link() {
        let queue = TestQueue::default();

        assert!(fill(&queue, 3));
        queue.set_next(1, None);
        queue.link.set(Some((1, 2)));
        assert!(gives(&queue, 0..3));
    }
}
