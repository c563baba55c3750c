// SPDX-License-Identifier: GPL-2.0

//! A queue of array indices, for the tests of [`super::batch`] and [`super::backlog`].

use super::batch::{
    push,
    take,
    Queue, //
};
use core::cell::Cell;

/// What happens between an exchange and what follows it.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Meet {
    /// Nothing.
    #[default]
    Nothing,
    /// A push of that node, as by an interrupt.
    Push(usize),
    /// A take, as by a worker on another CPU.
    Take,
}

/// A queue of `N` nodes that lets a test put something into the middle of an operation.
pub struct TestQueue<const N: usize> {
    newest: Cell<Option<usize>>,
    oldest: Cell<Option<usize>>,
    next: [Cell<Option<usize>>; N],
    device: [Cell<usize>; N],
    /// What the next exchange meets.
    pub meet: Cell<Meet>,
    /// What `push()` returned there, or whether `take()` took something.
    pub met: Cell<bool>,
    /// What a producer in the middle of its push is about to link.
    pub link: Cell<Option<(usize, usize)>>,
}

impl<const N: usize> TestQueue<N> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self {
            newest: Cell::new(None),
            oldest: Cell::new(None),
            next: [const { Cell::new(None) }; N],
            device: [const { Cell::new(0) }; N],
            meet: Cell::new(Meet::Nothing),
            met: Cell::new(false),
            link: Cell::new(None),
        }
    }

    /// Pushes a node of `device`; returns what `push()` does.
    pub fn push(&self, device: usize, node: usize) -> bool {
        if let Some(of) = self.device.get(node) {
            of.set(device);
        }
        push(self, node)
    }
}

impl<const N: usize> Default for TestQueue<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Queue for TestQueue<N> {
    type Node = usize;

    fn newest(&self) -> Option<usize> {
        self.newest.get()
    }

    fn swap_newest(&self, node: Option<usize>) -> Option<usize> {
        let old = self.newest.replace(node);

        match self.meet.take() {
            Meet::Nothing => (),
            Meet::Push(other) => self.met.set(push(self, other)),
            Meet::Take => self.met.set(take(self).is_some()),
        }
        old
    }

    fn oldest(&self) -> Option<usize> {
        self.oldest.get()
    }

    fn set_oldest(&self, node: Option<usize>) {
        self.oldest.set(node);
    }

    fn next(&self, node: usize) -> Option<usize> {
        self.next.get(node).and_then(Cell::get)
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        if let Some(link) = self.next.get(node) {
            link.set(next);
        }
    }

    fn device(&self, node: usize) -> usize {
        self.device.get(node).map_or(0, Cell::get)
    }

    fn relax(&self) {
        if let Some((node, next)) = self.link.take() {
            self.set_next(node, Some(next));
        }
    }
}
