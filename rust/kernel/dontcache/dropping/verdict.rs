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
        // Mostly. The rest is out of its way.
        State {
            locked: true,
            gone: false,
            writeback: false,
            dirty: false,
            mapped: false,
            pinned: false,
        } => Verdict::Drop,
        _ => stays(state),
    }
}

/// What becomes of a folio that is not dropped now.
#[cold]
fn stays(state: State) -> Verdict {
    match state {
        State { dirty: true, .. }
        | State {
            writeback: true, ..
        } => Verdict::Nothing,
        State { locked: false, .. } => Verdict::Retry,
        State { gone: true, .. } => Verdict::Nothing,
        State { mapped: true, .. } => Verdict::Mapped,
        _ => Verdict::Pinned,
    }
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
}
