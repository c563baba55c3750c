// SPDX-License-Identifier: GPL-2.0

//! What becomes of a folio of an uncached write when its writeback has ended.
//!
//! Pure: what was found out about the folio goes in, the verdict comes out.

/// What was found out about a folio. Stable while its lock is held, a hint if not.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// The lock could be taken.
    pub locked: bool,
    /// No longer in the page cache, or no longer to be dropped.
    pub gone: bool,
    /// Under writeback again.
    pub writeback: bool,
    /// Dirty again.
    pub dirty: bool,
    /// Mapped by a process.
    pub mapped: bool,
    /// Pinned: a device may be reading or writing it.
    pub pinned: bool,
}

/// What becomes of a folio.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is dropped.
    Drop,
    /// Somebody else sees to it: who took it out, or the end of its next writeback.
    Nothing,
    /// It is looked at again soon.
    Retry,
    /// It stays as if it had been written by an ordinary write, since a process maps it.
    Mapped,
    /// It stays, since it is pinned, as for [`Verdict::Mapped`].
    Pinned,
}

/// Decides about a folio.
///
/// What is dirty needs no other try, also if somebody else has its lock: a try would come before
/// the writeback, whose end is one.
///
/// # Examples
///
/// ```
/// use kernel::dontcache::dropping::verdict::{decide, State, Verdict};
///
/// let locked = State { locked: true, ..State::default() };
///
/// assert_eq!(decide(locked), Verdict::Drop);
/// assert_eq!(decide(State { mapped: true, ..locked }), Verdict::Mapped);
/// assert_eq!(decide(State::default()), Verdict::Retry);
/// ```
#[inline]
pub fn decide(state: State) -> Verdict {
    match state {
        State { dirty: true, .. }
        | State {
            writeback: true, ..
        } => Verdict::Nothing,
        State { locked: false, .. } => Verdict::Retry,
        State { gone: true, .. } => Verdict::Nothing,
        State { mapped: true, .. } => Verdict::Mapped,
        State { pinned: true, .. } => Verdict::Pinned,
        _ => Verdict::Drop,
    }
}

/// Moves those items to the front whose key is that of the first, in their order, and returns how
/// many they are: 0 for no items, else at least 1. That of the others may change.
#[inline]
pub fn group_first<T>(items: &mut [T], key: impl Fn(&T) -> usize) -> usize {
    let Some((first, others)) = items.split_first() else {
        return 0;
    };
    let of = key(first);
    // Mostly it is all of them.
    let mut same = others
        .iter()
        .position(|other| key(other) != of)
        .map_or(items.len(), |at| at.saturating_add(1));

    for at in same.saturating_add(1)..items.len() {
        let Some((before, [item, ..])) = items.split_at_mut_checked(at) else {
            break;
        };

        if key(item) == of {
            if let Some(other) = before.get_mut(same) {
                core::mem::swap(other, item);
            }
            same = same.saturating_add(1);
        }
    }
    same
}

#[cfg_attr(
    CONFIG_DONTCACHE_RUST_KUNIT_TEST,
    macros::kunit_tests(dontcache_verdict)
)]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;

    #[test]
    fn only_a_locked_clean_unused_folio_is_dropped() {
        for bits in 0u32..64 {
            let bit = |at: u32| bits & (1 << at) != 0;
            let state = State {
                writeback: bit(0),
                dirty: bit(1),
                locked: !bit(2),
                gone: bit(3),
                mapped: bit(4),
                pinned: bit(5),
            };
            // The lowest bit decides.
            let expected = match bits.trailing_zeros() {
                0 | 1 | 3 => Verdict::Nothing,
                2 => Verdict::Retry,
                4 => Verdict::Mapped,
                5 => Verdict::Pinned,
                _ => Verdict::Drop,
            };

            assert_eq!(decide(state), expected);
        }
    }

    #[test]
    fn groups_what_is_like_the_first() {
        // All words of three letters of length 0 to 5, tagged with where each letter was.
        for len in 0..=5u32 {
            for word in 0..3usize.pow(len) {
                let letter = |at: usize| word / 3usize.pow(at as u32) % 3;
                let mut all: [(usize, usize); 5] = core::array::from_fn(|at| (letter(at), at));
                let Some(items) = all.get_mut(..len as usize) else {
                    continue;
                };
                let same = group_first(items, |(key, _)| *key);
                let expected = (0..len as usize).filter(|at| letter(*at) == letter(0));

                assert!(items.iter().take(same).map(|(_, at)| *at).eq(expected));
                items.sort_unstable_by_key(|(_, at)| *at);
                assert!(items.iter().enumerate().all(|(nr, (_, at))| nr == *at));
            }
        }
    }
}
