// SPDX-License-Identifier: GPL-2.0

//! The batch of finished bios of one CPU: a list that any CPU may take.
//!
//! Pure: knows neither bios nor threads, so KUnit, a host test, proptest and loom all run this
//! source.
//!
//! # State machine
//!
//! The head word is the whole state: empty, or the newest node of a chain.
//!
//! ```text
//!             push(): true, the caller sees to it that the worker runs
//!   empty  ------------------------------------------------>  not empty  --+ push(): false
//!          <------------------------------------------------             <-+
//!             take(): one exchange, from whatever CPU
//! ```
//!
//! The worker looks at the head once more between the moment from which it can be woken and going
//! to sleep, and the replacement of the head is a full barrier. So either that look sees the new
//! node, or the waking sees the sleeper: no node stays behind, and none has to wait for a CPU to
//! be dead. The exchange hands each chain to one worker only, so nodes come out once and in the
//! order in which they were pushed.
//!
//! A CPU that goes away changes nothing here. The scheduler moves the worker to another CPU,
//! which takes the list as the old one would have done.

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
    /// Full: who takes `new` sees the link of `new` and all that the producer wrote before, and
    /// what the producer reads next is no older than the new head.
    fn replace(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> core::result::Result<(), Option<Self::Node>>;

    /// Empties the head and returns what it was.
    ///
    /// Acquire: pairs with [`Stack::replace`].
    fn take(&self) -> Option<Self::Node>;

    /// The link of a node that the caller owns.
    fn next(&self, node: Self::Node) -> Option<Self::Node>;

    /// Sets the link of a node that the caller owns.
    fn set_next(&self, node: Self::Node, next: Option<Self::Node>);

    /// What a node that the caller owns came from: equal for nodes of one device.
    fn device(&self, node: Self::Node) -> usize;
}

/// Adds `node` to `stack`; the caller sees to it that the worker runs if this returns `true`.
///
/// Retries only when somebody else got between the look at the head and its replacement: a take,
/// after which the head is empty, or another producer.
#[inline]
#[must_use = "a node added to an empty batch is lost unless the worker runs"]
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

/// Takes all nodes of `stack`; returns the oldest, linked to newer ones.
#[inline]
pub fn take<S: Stack>(stack: &S) -> Option<S::Node> {
    let mut oldest = None;
    let mut newest = stack.take();

    // The chain runs from the newest node to the oldest.
    while let Some(node) = newest {
        newest = stack.next(node);
        stack.set_next(node, oldest);
        oldest = Some(node);
    }

    oldest
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_batch))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;
    use core::cell::Cell;

    const NODES: usize = 8;

    /// A stack of array indices that lets a test put a take into the middle of a push.
    #[derive(Default)]
    struct TestStack {
        head: Cell<Option<usize>>,
        next: [Cell<Option<usize>>; NODES],
        take_in_push: Cell<bool>,
        taken: Cell<usize>,
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
            if self.take_in_push.replace(false) {
                self.taken.set(length(self, take(self)));
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

        fn device(&self, _: usize) -> usize {
            0
        }
    }

    fn length(stack: &TestStack, mut node: Option<usize>) -> usize {
        let mut nr = 0;

        while let Some(n) = node {
            node = stack.next(n);
            nr += 1;
        }
        nr
    }

    /// Pushes `0..nr`, and says whether just the first of them asked for the worker.
    fn fill(stack: &TestStack, nr: usize) -> bool {
        (0..nr).fold(true, |ok, node| ok & (push(stack, node) == (node == 0)))
    }

    /// Takes all of `stack`, and says whether that gave `0..nr` in order.
    fn gives_in_order(stack: &TestStack, nr: usize) -> bool {
        let mut node = take(stack);
        let mut expected = 0;

        while let Some(n) = node {
            if n != expected {
                return false;
            }
            expected += 1;
            node = stack.next(n);
        }
        expected == nr && stack.head.get().is_none()
    }

    #[test]
    fn only_the_first_push_asks_for_the_worker() {
        for nr in 0..=NODES {
            assert!(fill(&TestStack::default(), nr));
        }
    }

    #[test]
    fn gives_every_node_once_and_oldest_first() {
        for nr in 0..=NODES {
            let stack = TestStack::default();

            assert!(fill(&stack, nr));
            assert!(gives_in_order(&stack, nr));
            assert_eq!(take(&stack), None);
        }
    }

    #[test]
    fn asks_for_the_worker_again_after_each_take() {
        let stack = TestStack::default();

        for nr in 1..=NODES {
            assert!(fill(&stack, nr));
            assert!(gives_in_order(&stack, nr));
        }
    }

    #[test]
    fn push_that_loses_to_a_take_asks_for_the_worker() {
        let stack = TestStack::default();

        assert!(fill(&stack, 3));
        stack.take_in_push.set(true);
        assert!(push(&stack, 3));
        assert_eq!(stack.taken.get(), 3);
        assert_eq!(stack.next(3), None);
        assert_eq!(take(&stack), Some(3));
    }

    #[test]
    fn take_in_an_empty_push_changes_nothing() {
        let stack = TestStack::default();

        stack.take_in_push.set(true);
        assert!(push(&stack, 0));
        assert_eq!(stack.taken.get(), 0);
        assert!(gives_in_order(&stack, 1));
    }
}
