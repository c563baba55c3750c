// SPDX-License-Identifier: GPL-2.0

//! Interleavings of a round that tries folios again with those who remember some meanwhile, as
//! tests/model.rs does it for finished bios.

use dontcache_host::dropping::retries::{
    is_remembered,
    remember,
    retry,
    Retry,
    Slot,
    TRIES, //
};
use loom::{
    model::Builder,
    sync::{
        atomic::{
            AtomicBool,
            AtomicUsize,
            Ordering, //
        },
        Arc, //
    },
    thread,
};

struct Word {
    word: AtomicUsize,
    /// Compares and then replaces, in two steps.
    torn: bool,
}

impl Slot for Word {
    fn word(&self) -> usize {
        self.word.load(Ordering::Relaxed)
    }

    fn replace(&self, old: usize, new: usize) -> bool {
        if self.torn {
            let same = self.word.load(Ordering::SeqCst) == old;

            if same {
                self.word.store(new, Ordering::SeqCst);
            }
            return same;
        }
        self.word
            .compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }
}

const ONE: Retry = Retry { pfn: 1, tries: 1 };
const OTHER: Retry = Retry { pfn: 2, tries: 1 };

/// A round finds folio 1, and for it that it `fails` or not, while somebody ends a writeback of it
/// and somebody else one of folio 2. There is room for `nr`.
fn check(nr: usize, tries: usize, fails: bool, torn: bool) {
    let mut builder = Builder::new();

    builder.preemption_bound = Some(3);
    builder.check(move || {
        let slots: Arc<Vec<_>> = Arc::new(
            (0..nr)
                .map(|_| Word {
                    word: AtomicUsize::new(0),
                    torn,
                })
                .collect(),
        );
        let asked = Arc::new(AtomicBool::new(false));

        assert!(remember(&slots, Retry { tries, ..ONE }));

        let round = {
            let (slots, asked) = (slots.clone(), asked.clone());

            thread::spawn(move || {
                let mut seen = false;

                retry(&slots, |retry| {
                    seen |= retry.pfn == ONE.pfn && asked.load(Ordering::SeqCst);
                    fails
                });
                seen
            })
        };
        let other = (nr > 1).then(|| {
            let slots = slots.clone();

            thread::spawn(move || assert!(remember(&slots, OTHER), "there is room for each"))
        });

        asked.store(true, Ordering::SeqCst);
        assert!(remember(&slots, ONE), "there is room for each");
        if let Some(other) = other {
            other.join().unwrap();
        }
        let seen = round.join().unwrap();

        assert!(
            seen || is_remembered(&slots, ONE.pfn),
            "what is remembered is tried after that"
        );

        let mut taken = Vec::new();

        retry(&slots, |retry| {
            taken.push(retry.pfn);
            false
        });
        taken.sort();
        taken
            .windows(2)
            .for_each(|pair| assert_ne!(pair[0], pair[1], "each once"));
    });
}

#[test]
fn each_is_remembered_once_and_tried_after_that() {
    for tries in [1, TRIES] {
        for fails in [false, true] {
            check(2, tries, fails, false);
        }
    }
}

#[test]
fn a_folio_finds_its_own_slot_where_there_is_no_other() {
    for fails in [false, true] {
        check(1, 1, fails, false);
    }
}

#[test]
#[should_panic(expected = "tried after that")]
fn finds_a_torn_step() {
    check(1, 1, false, true);
}
