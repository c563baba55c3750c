// SPDX-License-Identifier: GPL-2.0

//! A queue of array indices, for the tests of [`super::batch`] and [`super::backlog`].

use super::batch::{
    push,
    take,
    Queue, //
};
use core::cell::Cell;

/// What happens in the middle of an operation.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Meet {
    /// Nothing.
    #[default]
    Nothing,
    /// Between `set_idle()` and the look: a push of that node, as by an interrupt.
    Push(usize),
    /// Between a look and an exchange: a take, as by a worker on another CPU.
    Take,
}

/// A queue of `N` nodes.
pub struct TestQueue<const N: usize> {
    newest: Cell<Option<usize>>,
    next: [Cell<Option<usize>>; N],
    device: [Cell<usize>; N],
    /// What the next operation meets.
    pub meet: Cell<Meet>,
    /// How many nodes that took.
    pub met: Cell<usize>,
    /// How often the worker was woken.
    pub woken: Cell<usize>,
    /// How often it slept.
    pub slept: Cell<usize>,
    /// Whether it is between `set_idle()` and `set_running()`.
    pub is_idle: Cell<bool>,
}

impl<const N: usize> TestQueue<N> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self {
            newest: Cell::new(None),
            next: [const { Cell::new(None) }; N],
            device: [const { Cell::new(0) }; N],
            meet: Cell::new(Meet::Nothing),
            met: Cell::new(0),
            woken: Cell::new(0),
            slept: Cell::new(0),
            is_idle: Cell::new(false),
        }
    }

    /// Pushes a node of `device`.
    pub fn push(&self, device: usize, node: usize) {
        if let Some(of) = self.device.get(node) {
            of.set(device);
        }
        push(self, node);
    }
}

impl<const N: usize> Default for TestQueue<N> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: Nodes are indices, which are checked.
unsafe impl<const N: usize> Queue for TestQueue<N> {
    type Node = usize;

    fn newest(&self) -> Option<usize> {
        self.newest.get()
    }

    fn replace_newest(&self, old: Option<usize>, new: usize) -> Result<(), Option<usize>> {
        if self.meet.get() == Meet::Take {
            self.meet.set(Meet::Nothing);
            self.met.set(take(self).map_or(0, |(_, nr)| nr));
        }
        if self.newest.get() != old {
            return Err(self.newest.get());
        }
        self.newest.set(Some(new));
        Ok(())
    }

    fn take_newest(&self) -> Option<usize> {
        self.newest.take()
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

    fn wake(&self) {
        self.woken.set(self.woken.get() + 1);
    }

    fn set_idle(&self) {
        self.is_idle.set(true);
    }

    fn set_running(&self) {
        self.is_idle.set(false);
    }

    fn sleep(&self) {
        assert!(self.is_idle.get());
        self.slept.set(self.slept.get() + 1);
    }

    fn barrier(&self) {
        if let Meet::Push(node) = self.meet.take() {
            push(self, node);
        }
    }
}
