// SPDX-License-Identifier: GPL-2.0

//! The batch of finished bios of one CPU, and when its worker runs.
//!
//! Pure: knows neither bios nor threads, so KUnit, host tests, proptest and loom run this source.
//!
//! The word that names the newest node is the whole state: empty, or not.
//!
//! ```text
//!           push(): finds it empty, wakes the worker
//!   empty  ------------------------------------------->  not empty  --+ push()
//!          <-------------------------------------------             <-+
//!           take(): one exchange, by the worker
//! ```
//!
//! Nothing is held back: a node that is alone wakes the worker, an ordinary thread, at once. So
//! nobody who waits for a node waits for others to come.
//!
//! A CPU that goes away changes nothing. The scheduler moves the worker, which takes the batch from
//! another CPU as it would have done from its own.

/// A batch, and the thread that is its worker.
///
/// # Safety
///
/// The implementation hands nodes to nobody but the functions of this module and of
/// [`super::backlog`], which access those only that they were given or took.
pub unsafe trait Queue {
    /// A handle on one node, cheap to copy.
    type Node: Copy + PartialEq;

    /// The newest node. Relaxed.
    fn newest(&self) -> Option<Self::Node>;

    /// Replaces the newest node if it is `old`, or says what it is. A release: who takes a node
    /// sees all that its producer wrote before.
    fn replace_newest(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> Result<(), Option<Self::Node>>;

    /// Takes the newest node, and with it all others. An acquire.
    fn take_newest(&self) -> Option<Self::Node>;

    /// The link of a node that is in nobody else's hands.
    fn next(&self, node: Self::Node) -> Option<Self::Node>;

    /// Sets the link of a node that is in nobody else's hands.
    fn set_next(&self, node: Self::Node, next: Option<Self::Node>);

    /// What a node came from: equal for nodes of one device.
    fn device(&self, node: Self::Node) -> usize;

    /// Wakes the worker if it sleeps, or is about to. Orders as `wake_up_process()` does: a full
    /// barrier before the look at its state.
    fn wake(&self);

    /// From here on [`Queue::wake`] keeps the worker, who calls this, from sleeping. Relaxed.
    fn set_idle(&self);

    /// Takes that back. Relaxed.
    fn set_running(&self);

    /// Sleeps until [`Queue::wake`], unless that came since [`Queue::set_idle`].
    fn sleep(&self);

    /// A full barrier.
    fn barrier(&self);
}

/// Adds `node` to `queue`, and sees to it that the worker runs.
///
/// With interrupts off: what comes to the CPU in between would find the batch not empty, and wait
/// for a worker that has not been woken.
#[inline]
pub fn push<Q: Queue>(queue: &Q, node: Q::Node) {
    let mut newest = queue.newest();

    // Only the worker interferes, by a take, and only from another CPU.
    loop {
        queue.set_next(node, newest);
        match queue.replace_newest(newest, node) {
            Ok(()) => break,
            Err(now) => newest = now,
        }
    }
    if newest.is_none() {
        queue.wake();
    }
}

/// Takes all nodes of `queue`; returns the oldest, which links to those after it, and how many they
/// are.
#[inline]
pub fn take<Q: Queue>(queue: &Q) -> Option<(Q::Node, usize)> {
    // Mostly there is nothing when a worker looks again, and no need to own the cache line.
    queue.newest()?;

    let mut oldest = queue.take_newest()?;
    let mut nr = 1usize;
    let mut older = queue.next(oldest);

    queue.set_next(oldest, None);
    while let Some(node) = older {
        older = queue.next(node);
        queue.set_next(node, Some(oldest));
        oldest = node;
        nr = nr.wrapping_add(1);
    }
    Some((oldest, nr))
}

/// Sleeps until a node comes, unless there is one.
#[inline]
pub fn idle<Q: Queue>(queue: &Q) {
    queue.set_idle();
    // Pairs with that of wake(): either the new node is seen here, or this task there.
    queue.barrier();
    if queue.newest().is_none() {
        queue.sleep();
    }
    queue.set_running();
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

    /// Pushes nodes, and returns how often the worker was woken.
    fn fill(queue: &TestQueue, nodes: impl IntoIterator<Item = usize>) -> usize {
        let before = queue.woken.get();

        nodes.into_iter().for_each(|node| push(queue, node));
        queue.woken.get() - before
    }

    /// Takes all of `queue`, and says whether that gave `expected`, unlinked at the end.
    fn gives(queue: &TestQueue, expected: impl ExactSizeIterator<Item = usize>) -> bool {
        let Some((oldest, nr)) = take(queue) else {
            return expected.len() == 0;
        };
        let mut node = Some(oldest);

        if nr != expected.len() {
            return false;
        }
        for wanted in expected {
            if node != Some(wanted) {
                return false;
            }
            node = queue.next(wanted);
        }
        node.is_none() && queue.newest().is_none()
    }

    #[test]
    fn only_the_first_push_wakes_the_worker() {
        for nr in 0..=NODES {
            assert_eq!(fill(&TestQueue::default(), 0..nr), nr.min(1));
        }
    }

    #[test]
    fn gives_every_node_once_and_oldest_first() {
        for nr in 0..=NODES {
            let queue = TestQueue::default();

            fill(&queue, 0..nr);
            assert!(gives(&queue, 0..nr));
            assert!(gives(&queue, 0..0));
        }
    }

    #[test]
    fn wakes_the_worker_again_after_each_take() {
        let queue = TestQueue::default();

        for nr in 1..=NODES {
            assert_eq!(fill(&queue, 0..nr), 1);
            assert!(gives(&queue, 0..nr));
        }
    }

    #[test]
    fn stale_link_of_a_new_node_is_not_followed() {
        // blk_update_request() leaves bi_next pointing to the next bio of the request.
        let queue = TestQueue::default();

        for node in 0..NODES {
            queue.set_next(node, Some((node + 1) % NODES));
        }
        fill(&queue, 0..3);
        assert!(gives(&queue, 0..3));
    }

    #[test]
    fn take_in_the_middle_of_a_push_leaves_it_to_wake_the_worker() {
        for before in 0..3 {
            let queue = TestQueue::default();

            fill(&queue, 0..before);
            queue.meet.set(Meet::Take);
            assert_eq!(fill(&queue, [before]), 1);
            assert_eq!(queue.met.get(), before);
            assert!(gives(&queue, before..before + 1));
        }
    }

    #[test]
    fn sleeps_only_if_there_is_nothing() {
        let queue = TestQueue::default();

        idle(&queue);
        assert_eq!(queue.slept.get(), 1);
        push(&queue, 0);
        idle(&queue);
        assert_eq!(queue.slept.get(), 1);
        assert!(!queue.is_idle.get());
    }

    #[test]
    fn node_that_comes_while_it_goes_to_sleep_is_seen() {
        let queue = TestQueue::default();

        queue.meet.set(Meet::Push(0));
        idle(&queue);
        assert_eq!(queue.slept.get(), 0);
        assert_eq!(queue.woken.get(), 1);
        assert!(gives(&queue, 0..1));
    }
}
