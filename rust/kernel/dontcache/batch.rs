// SPDX-License-Identifier: GPL-2.0

//! The batch of finished bios of one CPU: a list that any CPU may drain.
//!
//! Pure: knows neither bios nor workqueues, so KUnit, a host test, proptest and loom all run this
//! source.
//!
//! # State machine
//!
//! The head word is the whole state: empty, or the newest node of a chain.
//!
//! ```text
//!             push(): true, the caller queues the worker
//!   empty  ------------------------------------------------>  not empty  --+ push(): false
//!          <------------------------------------------------             <-+
//!             drain(): one exchange, from whatever CPU
//! ```
//!
//! A worker is queued for every passage from empty to not empty, and a workqueue clears its
//! pending bit (a full barrier) before it calls the worker. So either the drain that is already
//! pending sees the new node, or the queueing is not absorbed by it and a further drain follows:
//! no node stays behind, and none has to wait for a CPU to be dead. The exchange hands each chain
//! to one drainer only, and a workqueue never runs one work item twice at the same time, so nodes
//! come out once and in the order in which they were pushed.
//!
//! A CPU that goes away changes nothing here. The workqueue moves the worker to another CPU,
//! which drains the list as the old one would have done.

/// What a batch is made of: a head word and a link in every node.
///
/// Implementations provide the memory ordering that is stated at each operation.
pub trait Stack {
    /// A handle on one node, cheap to copy.
    type Node: Copy;

    /// Reads the head. Needs no ordering.
    fn peek(&self) -> Option<Self::Node>;

    /// Replaces the head by `new` if it is `old`, else returns what it is.
    ///
    /// Release: who takes `new` sees the link of `new` and all that the producer wrote before.
    fn replace(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> core::result::Result<(), Option<Self::Node>>;

    /// Empties the head and returns what it was.
    ///
    /// Acquire: pairs with the release in [`Stack::replace`].
    fn take(&self) -> Option<Self::Node>;

    /// The link of a node that the caller owns.
    fn next(&self, node: Self::Node) -> Option<Self::Node>;

    /// Sets the link of a node that the caller owns.
    fn set_next(&self, node: Self::Node, next: Option<Self::Node>);
}

/// Adds `node` to `stack`; the caller queues the worker if this returns `true`.
///
/// Retries only when a drain got between the look at the head and its replacement. After that the
/// head is empty and only other producers can change it, so with one producer at a time (a CPU
/// with interrupts off) there is at most one retry.
#[inline]
#[must_use = "a node added to an empty batch is lost unless the worker is queued"]
pub fn push<S: Stack>(stack: &S, node: S::Node) -> bool {
    let mut old = stack.peek();

    loop {
        stack.set_next(node, old);
        match stack.replace(old, node) {
            Ok(()) => return old.is_none(),
            Err(now) => old = now,
        }
    }
}

/// Takes all nodes of `stack` and hands them to `complete`, oldest first; returns how many.
///
/// A node belongs to `complete` when it is handed over: it may be freed, or pushed again.
#[inline]
pub fn drain<S: Stack>(stack: &S, mut complete: impl FnMut(S::Node)) -> usize {
    let mut oldest = None;
    let mut newest = stack.take();
    let mut nr = 0usize;

    // The chain runs from the newest node to the oldest.
    while let Some(node) = newest {
        newest = stack.next(node);
        stack.set_next(node, oldest);
        oldest = Some(node);
    }

    while let Some(node) = oldest {
        // `node` may be gone once it is handed over, and callbacks expect it unlinked.
        oldest = stack.next(node);
        stack.set_next(node, None);
        complete(node);
        nr = nr.wrapping_add(1);
    }

    nr
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_batch))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;
    use core::cell::Cell;

    const NODES: usize = 8;

    /// A stack of array indices that lets a test put a drain into the middle of a push.
    #[derive(Default)]
    struct TestStack {
        head: Cell<Option<usize>>,
        next: [Cell<Option<usize>>; NODES],
        drain_in_push: Cell<bool>,
        drained: Cell<usize>,
    }

    impl Stack for TestStack {
        type Node = usize;

        fn peek(&self) -> Option<usize> {
            self.head.get()
        }

        fn replace(
            &self,
            old: Option<usize>,
            new: usize,
        ) -> core::result::Result<(), Option<usize>> {
            if self.drain_in_push.replace(false) {
                self.drained.set(drain(self, |_| ()));
            }
            if self.head.get() != old {
                return Err(self.head.get());
            }
            self.head.set(Some(new));
            Ok(())
        }

        fn take(&self) -> Option<usize> {
            self.head.take()
        }

        fn next(&self, node: usize) -> Option<usize> {
            self.next.get(node).and_then(Cell::get)
        }

        fn set_next(&self, node: usize, next: Option<usize>) {
            if let Some(link) = self.next.get(node) {
                link.set(next);
            }
        }
    }

    /// Pushes `0..nr`, and says whether just the first of them asked for the worker.
    fn fill(stack: &TestStack, nr: usize) -> bool {
        (0..nr).fold(true, |ok, node| ok & (push(stack, node) == (node == 0)))
    }

    /// Drains `stack`, and says whether that gave `0..nr` in order.
    fn drains_in_order(stack: &TestStack, nr: usize) -> bool {
        let mut expected = 0;
        let mut ok = true;
        let count = drain(stack, |node| {
            ok &= node == expected && stack.next(node).is_none();
            expected += 1;
        });

        ok && count == nr && stack.head.get().is_none()
    }

    #[test]
    fn only_the_first_push_asks_for_the_worker() {
        for nr in 0..=NODES {
            assert!(fill(&TestStack::default(), nr));
        }
    }

    #[test]
    fn drains_every_node_once_and_oldest_first() {
        for nr in 0..=NODES {
            let stack = TestStack::default();

            assert!(fill(&stack, nr));
            assert!(drains_in_order(&stack, nr));
            assert_eq!(drain(&stack, |_| ()), 0);
        }
    }

    #[test]
    fn asks_for_the_worker_again_after_each_drain() {
        let stack = TestStack::default();

        for nr in 1..=NODES {
            assert!(fill(&stack, nr));
            assert!(drains_in_order(&stack, nr));
        }
    }

    #[test]
    fn push_that_loses_to_a_drain_asks_for_the_worker() {
        let stack = TestStack::default();

        assert!(fill(&stack, 3));
        stack.drain_in_push.set(true);
        assert!(push(&stack, 3));
        assert_eq!(stack.drained.get(), 3);
        assert_eq!(stack.next(3), None);
        assert_eq!(drain(&stack, |_| ()), 1);
    }

    #[test]
    fn drain_in_an_empty_push_changes_nothing() {
        let stack = TestStack::default();

        stack.drain_in_push.set(true);
        assert!(push(&stack, 0));
        assert_eq!(stack.drained.get(), 0);
        assert!(drains_in_order(&stack, 1));
    }

    #[test]
    fn callback_may_push_the_node_again() {
        let stack = TestStack::default();
        let mut wanted = false;

        assert!(fill(&stack, 3));
        assert_eq!(
            drain(&stack, |node| {
                if node == 0 {
                    wanted = push(&stack, node);
                }
            }),
            3
        );
        assert!(wanted);
        assert!(drains_in_order(&stack, 1));
    }
}
