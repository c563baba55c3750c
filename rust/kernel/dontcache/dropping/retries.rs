// SPDX-License-Identifier: GPL-2.0

//! Folios that are tried again, without a reference to them.
//!
//! Pure: a fixed number of words, each free or taken by a folio's number and how often it has been
//! tried.
//!
//! A reference would keep reclaim, small cgroups and compaction from memory that they could have at
//! once. So what is remembered is where the folio is, and who looks again finds it there, or
//! something else, or nothing. It takes what it finds for what it is: if that is marked to be
//! dropped too, it may be dropped too.

/// How often a folio is tried again. With a quarter of a second between two rounds the last try
/// comes within the second after which an uncached write has left nothing behind, if at all. The
/// first may come at once, if a round is under way.
pub const TRIES: usize = 4;

/// How many slots are looked at for one that is free, in an interrupt maybe.
const PROBES: usize = 64;

/// A word that several contexts, interrupts too, claim and free.
pub trait Slot {
    /// What is there. Relaxed.
    fn word(&self) -> usize;

    /// Writes `new` if `old` is there; says whether it did. Fully ordered if it did.
    fn replace(&self, old: usize, new: usize) -> bool;
}

/// A folio to be tried again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retry {
    /// Number of the first page frame.
    pub pfn: usize,
    /// The how manieth try it will be: from 1 to [`TRIES`].
    pub tries: usize,
}

impl Retry {
    /// For the number of tries, and [`Self::UNDER_WAY`].
    const BITS: u32 = 4;
    /// Of a word whose folio is being tried: it is remembered still, for who asks or moves it.
    const UNDER_WAY: usize = 1 << 3;

    fn to_word(self) -> Option<usize> {
        let word = self.pfn.checked_mul(1 << Self::BITS)?;

        (1..=TRIES)
            .contains(&self.tries)
            .then_some(word | self.tries)
    }

    fn from_word(word: usize) -> Option<Self> {
        (word != 0).then_some(Self {
            pfn: word >> Self::BITS,
            tries: word & (Self::UNDER_WAY - 1),
        })
    }
}

/// Where a folio starts to look for a slot, of so many: by the upper bits of a product, since the
/// lower ones of large folios' numbers are all alike.
fn start(pfn: usize, slots: usize) -> Option<usize> {
    // 2^64 divided by the golden ratio, as in hash_64().
    let hash = (pfn as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;

    (hash as usize).checked_rem(slots)
}

/// Remembers a folio in one of `slots`; `false` if it has been tried enough, or those that it may
/// have are taken.
///
/// One that is remembered is not remembered twice, or who writes the same pages over and over would
/// leave others no room. It starts anew, also while it is being tried. Twice is it only if a slot
/// before its own came free.
pub fn remember<S: Slot>(slots: &[S], retry: Retry) -> bool {
    let Some((word, start)) = retry.to_word().zip(start(retry.pfn, slots.len())) else {
        return false;
    };
    let Some((before, after)) = slots.split_at_checked(start) else {
        return false;
    };

    // One that another has changed is looked at again: its folio may be this one, which is tried.
    after.iter().chain(before).take(PROBES).any(|slot| loop {
        let old = slot.word();
        let free = Retry::from_word(old).is_none_or(|other| other.pfn == retry.pfn);

        if !free || slot.replace(old, word) {
            break free;
        }
    })
}

/// Whether the folio at that page frame is in one of `slots`.
pub fn is_remembered<S: Slot>(slots: &[S], pfn: usize) -> bool {
    slots
        .iter()
        .any(|slot| Retry::from_word(slot.word()).is_some_and(|retry| retry.pfn == pfn))
}

/// Whether the folio at that page frame is to be tried, other than by a try that is under way.
pub fn is_to_be_tried<S: Slot>(slots: &[S], pfn: usize) -> bool {
    slots.iter().map(Slot::word).any(|word| {
        word & Retry::UNDER_WAY == 0 && Retry::from_word(word).is_some_and(|retry| retry.pfn == pfn)
    })
}

/// What became of the folios that were tried again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// How many are to be tried once more.
    pub waiting: usize,
    /// How many are not: they have been tried enough.
    pub missed: usize,
}

/// Hands the folios in `slots`, each once, to `fails`, which tells that one is to be tried again.
///
/// One that is remembered anew meanwhile stays so: who did that comes back for it.
pub fn retry<S: Slot>(slots: &[S], mut fails: impl FnMut(Retry) -> bool) -> Outcome {
    let mut outcome = Outcome::default();

    for slot in slots {
        let word = slot.word();
        let under_way = word | Retry::UNDER_WAY;
        let Some(retry) = Retry::from_word(word).filter(|_| slot.replace(word, under_way)) else {
            continue;
        };

        if !fails(retry) {
            slot.replace(under_way, 0);
            continue;
        }

        let next = Retry {
            tries: retry.tries.saturating_add(1),
            ..retry
        };
        let word = next.to_word();

        if !slot.replace(under_way, word.unwrap_or(0)) {
            continue;
        }
        if word.is_some() {
            outcome.waiting = outcome.waiting.saturating_add(1);
        } else {
            outcome.missed = outcome.missed.saturating_add(1);
        }
    }
    outcome
}

#[cfg_attr(
    CONFIG_DONTCACHE_RUST_KUNIT_TEST,
    macros::kunit_tests(dontcache_retries)
)]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;
    use core::cell::Cell;

    const NR: usize = 4;

    struct TestSlot(Cell<usize>);

    impl Slot for TestSlot {
        fn word(&self) -> usize {
            self.0.get()
        }

        fn replace(&self, old: usize, new: usize) -> bool {
            let same = self.0.get() == old;

            if same {
                self.0.set(new);
            }
            same
        }
    }

    fn slots() -> [TestSlot; NR] {
        [const { TestSlot(Cell::new(0)) }; NR]
    }

    /// The `nth` folio whose search starts at slot `at`.
    fn starting_at(at: usize, nth: usize) -> Retry {
        let pfn = (0..).filter(|pfn| start(*pfn, NR) == Some(at)).nth(nth);

        Retry {
            pfn: pfn.unwrap_or_default(),
            tries: 1,
        }
    }

    /// Takes all that is there: how many, the sum of their page frames, and of their tries.
    fn taken(slots: &[TestSlot]) -> (usize, usize, usize) {
        let mut sum = (0, 0, 0);

        let outcome = retry(slots, |retry| {
            sum = (sum.0 + 1, sum.1 + retry.pfn, sum.2 + retry.tries);
            false
        });

        assert_eq!(outcome, Outcome::default());
        sum
    }

    #[test]
    fn gives_each_folio_once() {
        for first in 0..2 * NR {
            let slots = slots();

            for pfn in first..first + NR {
                assert!(remember(&slots, Retry { pfn, tries: 2 }));
            }
            assert_eq!(taken(&slots), (NR, NR * first + 6, 2 * NR));
            assert_eq!(taken(&slots).0, 0);
        }
    }

    #[test]
    fn remembers_a_folio_once() {
        let slots = slots();

        for tries in [1, 2, 3, 1, 2] {
            for pfn in [5, 9] {
                assert!(remember(&slots, Retry { pfn, tries }));
            }
        }
        assert!(is_remembered(&slots, 5) && is_remembered(&slots, 9));
        assert!(!is_remembered(&slots, 0) && !is_remembered(&slots, 7));
        assert_eq!(taken(&slots), (2, 5 + 9, 2 + 2));
    }

    #[test]
    fn refuses_what_has_no_room() {
        let slots = slots();

        for nth in 0..NR {
            // All of them start to look at the same place.
            assert!(remember(&slots, starting_at(1, nth)));
        }
        assert!(!remember(&slots, starting_at(1, NR)));
        assert_eq!(taken(&slots).0, NR);
        assert!(remember(&slots, starting_at(1, NR)));
    }

    #[test]
    fn large_folios_find_room_as_others_do() {
        const MANY: usize = 256;

        for order in 0..12 {
            let slots = [const { TestSlot(Cell::new(0)) }; MANY];
            let mut places = [0usize; MANY];

            for nr in 0..MANY {
                if let Some(at) = start(nr << order, MANY) {
                    places[at] += 1;
                }
            }
            assert!(places.iter().all(|nr| *nr <= 4));
            // Three of four slots are taken before one is given up.
            for nr in 0..MANY * 3 / 4 {
                assert!(remember(
                    &slots,
                    Retry {
                        pfn: nr << order,
                        tries: 1
                    }
                ));
            }
        }
    }

    #[test]
    fn refuses_what_has_been_tried_enough() {
        let slots = slots();

        for (tries, ok) in [(0, false), (1, true), (TRIES, true), (TRIES + 1, false)] {
            assert_eq!(remember(&slots, Retry { pfn: 1, tries }), ok);
        }
        assert_eq!(taken(&slots), (1, 1, TRIES));
    }

    #[test]
    fn first_page_frame_and_largest_are_kept_apart_from_nothing() {
        let slots = slots();
        let most = usize::MAX >> 4;

        assert!(remember(&slots, Retry { pfn: 0, tries: 1 }));
        assert_eq!(taken(&slots), (1, 0, 1));
        assert!(remember(
            &slots,
            Retry {
                pfn: most,
                tries: TRIES
            }
        ));
        assert_eq!(taken(&slots), (1, most, TRIES));
        assert!(!remember(
            &slots,
            Retry {
                pfn: most + 1,
                tries: 1
            }
        ));
        assert!(!remember::<TestSlot>(&[], Retry { pfn: 1, tries: 1 }));
    }

    #[test]
    fn tries_each_once_a_time_and_so_many_times() {
        let slots = slots();

        for pfn in [0, NR, 2] {
            assert!(remember(&slots, Retry { pfn, tries: 1 }));
        }
        for tries in 1..=TRIES {
            let mut nr = 0;
            let outcome = retry(&slots, |retry| {
                assert_eq!(retry.tries, tries);
                nr += 1;
                true
            });
            let (waiting, missed) = if tries < TRIES { (3, 0) } else { (0, 3) };

            assert_eq!(nr, 3);
            assert_eq!(outcome, Outcome { waiting, missed });
        }
        assert_eq!(taken(&slots).0, 0);
    }

    #[test]
    fn folio_is_remembered_while_it_is_tried() {
        for fails in [false, true] {
            let slots = slots();
            let one = starting_at(2, 0);

            assert!(remember(&slots, one));
            // Nobody asks for it meanwhile, and then nobody comes back for it.
            let outcome = retry(&slots, |retry| {
                assert_eq!(retry, one);
                assert!(is_remembered(&slots, one.pfn));
                fails
            });

            assert_eq!(outcome.waiting, usize::from(fails));
            assert_eq!(taken(&slots).0, outcome.waiting);
        }
    }

    #[test]
    fn try_that_is_under_way_is_none_that_is_to_come() {
        let slots = slots();
        let (one, other) = (starting_at(2, 0), starting_at(2, 1));

        assert!(!is_to_be_tried(&slots, 0));
        assert!(remember(&slots, one));
        assert!(is_to_be_tried(&slots, one.pfn) && !is_to_be_tried(&slots, other.pfn));
        retry(&slots, |now| {
            if now == one {
                assert!(!is_to_be_tried(&slots, one.pfn));
                assert!(remember(&slots, other));
                assert!(!is_to_be_tried(&slots, one.pfn));
                assert!(remember(&slots, one));
                assert!(is_to_be_tried(&slots, one.pfn));
            }
            false
        });
    }

    #[test]
    fn folio_that_is_remembered_while_it_is_tried_starts_anew() {
        for (tries, fails) in [(1, false), (1, true), (TRIES, false), (TRIES, true)] {
            let slots = slots();
            let one = starting_at(2, 0);

            assert!(remember(&slots, Retry { tries, ..one }));
            let outcome = retry(&slots, |_| {
                assert!(remember(&slots, one));
                fails
            });

            assert_eq!(outcome, Outcome::default());
            assert_eq!(taken(&slots), (1, one.pfn, 1));
            assert_eq!(taken(&slots).0, 0);
        }
    }
}
