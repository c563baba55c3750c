// SPDX-License-Identifier: GPL-2.0

//! The limiter against arithmetic in 128 bits, the batch against a queue.

use dontcache_host::{
    batch::{
        drain,
        push,
        Stack, //
    },
    limiter::{
        decide,
        pages,
        Decision,
        Policy,
        Write, //
    },
};
use proptest::prelude::*;
use std::{
    cell::Cell,
    collections::VecDeque, //
};

/// Values around all that matters: zero, page boundaries, and both ends of the type.
fn interesting() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -2i64..3,
        (0u32..63, -2i64..3).prop_map(|(bit, off)| (1i64 << bit).wrapping_add(off)),
        (0i64..5).prop_map(|off| i64::MAX - off),
        (0i64..5).prop_map(|off| i64::MIN + off),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    proptest::sample::select(Policy::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn pages_is_division_rounded_up(bytes in interesting(), shift in 12u32..17) {
        let size = 1i128 << shift;
        let expected = (i128::from(bytes).max(0) + size - 1) / size;

        prop_assert_eq!(pages(bytes as isize, shift) as i128, expected);
    }

    #[test]
    fn decision_keeps_its_promises(
        policy in policy(),
        first in interesting(),
        last in interesting(),
        bytes in interesting(),
        busy: bool,
        nowait: bool,
        shift in 12u32..17,
    ) {
        let write = Write { first, last, bytes: bytes as isize, busy, nowait };
        let decision = decide(policy, &write, shift);
        let empty = bytes <= 0 || first < 0 || last < first;

        prop_assert_eq!(decision == Decision::Nothing, empty);
        prop_assert_eq!(decision == Decision::Skip, !empty && busy && policy == Policy::Lazy);
        if let Decision::Start(nr) = decision {
            prop_assert!(!nowait && policy != Policy::Kick && nr > 0);
            // The cap covers the bytes, and is less than one page above them.
            if policy == Policy::Lazy {
                let size = 1i128 << shift;
                prop_assert!(nr as i128 * size >= i128::from(bytes));
                prop_assert!((nr as i128 - 1) * size < i128::from(bytes));
            }
        }
    }

    #[test]
    fn only_names_are_names(name in "[a-zA-Z \\n]{0,6}") {
        let found = Policy::from_name(name.as_bytes());

        prop_assert_eq!(found.is_some(), ["flush", "lazy", "kick"].contains(&name.as_str()));
        prop_assert!(found.is_none_or(|policy| policy.name() == name));
    }
}

const NODES: usize = 64;

struct Nodes {
    head: Cell<Option<usize>>,
    next: [Cell<Option<usize>>; NODES],
}

impl Stack for Nodes {
    type Node = usize;

    fn peek(&self) -> Option<usize> {
        self.head.get()
    }

    fn replace(&self, old: Option<usize>, new: usize) -> Result<(), Option<usize>> {
        assert_eq!(self.head.get(), old);
        self.head.set(Some(new));
        Ok(())
    }

    fn take(&self) -> Option<usize> {
        self.head.take()
    }

    fn next(&self, node: usize) -> Option<usize> {
        self.next[node].get()
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        self.next[node].set(next);
    }
}

proptest! {
    #[test]
    fn batch_is_a_queue(pushes in proptest::collection::vec(any::<bool>(), 0..400)) {
        let nodes = Nodes { head: Cell::new(None), next: [const { Cell::new(None) }; NODES] };
        let mut free: VecDeque<usize> = (0..NODES).collect();
        let mut queue = VecDeque::new();

        for is_push in pushes {
            if let (true, Some(node)) = (is_push, free.pop_front()) {
                prop_assert_eq!(push(&nodes, node), queue.is_empty());
                queue.push_back(node);
            } else {
                let mut drained = VecDeque::new();
                prop_assert_eq!(drain(&nodes, |node| drained.push_back(node)), queue.len());
                prop_assert_eq!(&drained, &queue);
                free.append(&mut queue);
            }
        }
    }
}
