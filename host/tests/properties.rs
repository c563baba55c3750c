// SPDX-License-Identifier: GPL-2.0

//! The limiter against arithmetic in 128 bits, the batch and the backlog against queues.

use dontcache_host::{
    backlog::Backlog,
    batch::{
        push,
        Queue, //
    },
    limiter::{
        decide,
        pages,
        Decision,
        Policy,
        Write, //
    },
    pace::{
        Pace,
        Rest, //
    },
    test_queue::TestQueue,
};
use proptest::prelude::*;
use std::collections::VecDeque;

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

proptest! {
    #[test]
    fn batch_is_a_queue(pushes in proptest::collection::vec(any::<bool>(), 0..400)) {
        let nodes = TestQueue::<NODES>::new();
        let mut backlog = Backlog::new();
        let mut free: VecDeque<usize> = (0..NODES).collect();
        let mut queue = VecDeque::new();

        for is_push in pushes {
            if let (true, Some(node)) = (is_push, free.pop_front()) {
                prop_assert_eq!(push(&nodes, node), queue.is_empty());
                queue.push_back(node);
            } else {
                let mut done = VecDeque::new();
                let nr = backlog.run(&nodes, NODES, |node| done.push_back(node));
                prop_assert_eq!(nr, queue.len());
                prop_assert_eq!(&done, &queue);
                free.append(&mut queue);
            }
        }
    }

    /// Up to eight devices: each has its order, and waits for one run of each of the others.
    #[test]
    fn backlog_is_fair(
        budget in 1usize..20,
        steps in proptest::collection::vec(proptest::option::of(1usize..9), 0..400),
    ) {
        let nodes = TestQueue::<NODES>::new();
        let mut backlog = Backlog::new();
        let mut free: VecDeque<usize> = (0..NODES).collect();
        // For each device its nodes, and for how many runs the first of them has waited.
        let mut queues = vec![(VecDeque::new(), 0); 9];

        for step in steps {
            if let (Some(device), Some(node)) = (step, free.pop_front()) {
                let _ = nodes.push(device, node);
                queues[device].0.push_back(node);
                continue;
            }

            let mut served = [false; 9];
            let waiting: usize = queues.iter().map(|(queue, _)| queue.len()).sum();
            let nr = backlog.run(&nodes, budget, |node| {
                let device = nodes.device(node);

                assert_eq!(nodes.next(node), None);
                assert_eq!(queues[device].0.pop_front(), Some(node), "in order");
                served[device] = true;
                free.push_back(node);
            });

            prop_assert!(nr <= budget);
            prop_assert!(nr > 0 || waiting == 0);
            prop_assert_eq!(backlog.is_empty(), nr == waiting);
            for ((queue, runs), served) in queues.iter_mut().zip(served) {
                *runs = if served || queue.is_empty() { 0 } else { *runs + 1 };
                prop_assert!(*runs <= 8, "waited for {} runs", runs);
            }
        }
    }

    #[test]
    fn pace_keeps_its_promises(
        hz in proptest::sample::select(vec![24usize, 100, 250, 1000]),
        start: usize,
        runs in proptest::collection::vec((0usize..20, 0usize..200, any::<bool>()), 0..60),
    ) {
        let longest = (hz / 100).max(1);
        let mut now = start;
        let mut pace = Pace::new(hz, now);
        let mut rest = Rest::Idle;
        let mut idle_until = None;

        for (later, nr, hurried) in runs {
            now = now.wrapping_add(later);
            // Only who gathers can be hurried.
            let hurried = hurried && rest != Rest::Idle;
            let next = pace.after_run(nr, now, hurried);

            if hurried {
                idle_until = Some(now.wrapping_add(longest));
            }
            if let Some(until) = idle_until {
                if until.wrapping_sub(now) as isize > 0 {
                    prop_assert_eq!(next, Rest::Idle);
                }
            }
            match (rest, next) {
                (_, Rest::Gather(time)) => prop_assert!((1..=longest).contains(&time)),
                (Rest::Gather(_), Rest::Idle) => prop_assert!(hurried || nr < 2),
                _ => (),
            }
            if rest == Rest::Idle && later > 1 {
                prop_assert_eq!(next, Rest::Idle, "an idle worker has no timer");
            }
            rest = next;
        }
    }
}
