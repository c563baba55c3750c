// SPDX-License-Identifier: GPL-2.0

//! The policy against arithmetic in 128 bits, the batch and the backlog against queues, what is
//! tried again against a set.

use dontcache_host::{
    completion::{
        backlog::Backlog,
        batch::{
            push,
            Queue, //
        },
        test_queue::TestQueue,
    },
    dropping::retries::{
        remember,
        retry,
        Retry,
        Slot,
        TRIES, //
    },
    writeback::policy::{
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
    collections::{BTreeMap, VecDeque},
    ops::ControlFlow,
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
        // The flusher is told of no range.
        let empty = bytes <= 0 || policy != Policy::Kick && (first < 0 || last < first);

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

proptest! {
    #[test]
    fn batch_is_a_queue(pushes in proptest::collection::vec(any::<bool>(), 0..400)) {
        let nodes = TestQueue::<NODES>::new();
        let mut backlog = Backlog::new();
        let mut free: VecDeque<usize> = (0..NODES).collect();
        let mut queue = VecDeque::new();

        for is_push in pushes {
            if let (true, Some(node)) = (is_push, free.pop_front()) {
                let woken = nodes.woken.get();

                push(&nodes, node);
                prop_assert_eq!(nodes.woken.get() > woken, queue.is_empty());
                queue.push_back(node);
            } else {
                let mut done = VecDeque::new();
                let nr = backlog.run(&nodes, NODES, |node| {
                    done.push_back(node);
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(nr, queue.len());
                prop_assert_eq!(&done, &queue);
                free.append(&mut queue);
            }
        }
    }

    /// Each device has its order, and waits for one run of each of the others.
    #[test]
    fn backlog_is_fair(
        budget in 1usize..20,
        patience in 1usize..30,
        steps in proptest::collection::vec(proptest::option::of(1usize..9), 0..400),
    ) {
        let nodes = TestQueue::<NODES>::new();
        let mut backlog = Backlog::new();
        let mut free: VecDeque<usize> = (0..NODES).collect();
        // For each device its nodes, and for how many runs the first of them has waited.
        let mut queues = vec![(VecDeque::new(), 0); 9];

        for step in steps {
            if let (Some(device), Some(node)) = (step, free.pop_front()) {
                nodes.push(device << 6, node);
                queues[device].0.push_back(node);
                continue;
            }

            let mut served = [false; 9];
            let mut completed = 0;
            let waiting: usize = queues.iter().map(|(queue, _)| queue.len()).sum();
            let nr = backlog.run(&nodes, budget, |node| {
                let device = nodes.device(node) >> 6;

                assert_eq!(nodes.next(node), None);
                assert_eq!(queues[device].0.pop_front(), Some(node), "in order");
                served[device] = true;
                free.push_back(node);
                completed += 1;
                if completed < patience {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });

            prop_assert!(nr <= budget.min(patience));
            prop_assert!(nr > 0 || waiting == 0);
            prop_assert_eq!(backlog.is_empty(), nr == waiting);
            for ((queue, runs), served) in queues.iter_mut().zip(served) {
                *runs = if served || queue.is_empty() { 0 } else { *runs + 1 };
                prop_assert!(*runs <= 8, "waited for {} runs", runs);
            }
        }
    }

    /// Nothing is tried more often than it may be, twice at a time, or forgotten while there is room.
    #[test]
    fn retries_are_a_set(
        room in 1usize..12,
        steps in proptest::collection::vec(proptest::option::of(0usize..40), 0..200),
    ) {
        struct Word(Cell<usize>);

        impl Slot for Word {
            fn word(&self) -> usize {
                self.0.get()
            }

            fn replace(&self, old: usize, new: usize) -> bool {
                self.0.get() == old && self.0.replace(new) == old
            }
        }

        let slots: Vec<_> = (0..room).map(|_| Word(Cell::new(0))).collect();
        // Of each page frame, the tries since it was last remembered.
        let mut expected: BTreeMap<usize, usize> = BTreeMap::new();

        for step in steps {
            if let Some(pfn) = step {
                let taken = slots.iter().filter(|slot| slot.0.get() != 0).count();
                let ok = remember(&slots, Retry { pfn, tries: 1 });

                prop_assert_eq!(ok, taken < room || expected.contains_key(&pfn));
                if ok {
                    expected.insert(pfn, 1);
                }
                continue;
            }

            let mut got = Vec::new();
            let outcome = retry(&slots, |retry| {
                got.push((retry.pfn, retry.tries));
                // An odd one is still locked.
                retry.pfn % 2 == 1
            });

            // The same one twice, if a slot came free before that in which it was.
            for (pfn, tries) in &expected {
                prop_assert!(got.contains(&(*pfn, *tries)));
            }
            prop_assert!(got.iter().all(|(pfn, tries)| expected.get(pfn) <= Some(tries)));
            prop_assert!(got.iter().all(|(pfn, _)| expected.contains_key(pfn)));
            let odd = got.iter().copied().filter(|(pfn, _)| pfn % 2 == 1);
            let (again, missed): (Vec<_>, Vec<_>) = odd.partition(|(_, tries)| *tries < TRIES);
            prop_assert_eq!((outcome.waiting, outcome.missed), (again.len(), missed.len()));
            expected.retain(|pfn, tries| {
                *tries += 1;
                pfn % 2 == 1 && *tries <= TRIES
            });
        }
    }
}
