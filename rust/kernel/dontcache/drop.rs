// SPDX-License-Identifier: GPL-2.0

//! What becomes of a folio of an uncached write when its writeback has ended.
//!
//! Pure: what was found out about the folio goes in, the verdict comes out.

/// How often a folio is looked at again before it is left, see [`Verdict::Retry`].
///
/// Times a quarter of a second, that is the second within which a folio is dropped or left.
pub const TRIES: u32 = 4;

/// What was found out about a folio. Stable while its lock is held, a hint if not.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Whether the lock could be taken.
    pub locked: bool,
    /// No longer in the page cache, or no longer to be dropped.
    pub gone: bool,
    /// Under writeback again.
    pub writeback: bool,
    /// Dirty again.
    pub dirty: bool,
    /// Mapped by a process.
    pub mapped: bool,
    /// Marked as referenced, or pinned for DMA.
    pub referenced: bool,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is dropped.
    Drop,
    /// Somebody else sees to it: who took it out, or the end of the writeback it is under.
    Nothing,
    /// It is looked at again soon.
    Retry,
    /// It stays in the cache as if it had been written by an ordinary write.
    Leave(Why),
}

/// Why a folio is left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// A process maps it.
    Mapped,
    /// Somebody uses it.
    Referenced,
    /// It has been tried often enough. It keeps its mark: the end of its next writeback is another
    /// occasion.
    Tried,
}

/// Decides about a folio that has been tried `tries` times before.
pub fn decide(state: State, tries: u32) -> Verdict {
    let again = if tries < TRIES {
        Verdict::Retry
    } else {
        Verdict::Leave(Why::Tried)
    };

    match state {
        // All else may be wrong without the lock.
        State { locked: false, .. } => again,
        State { gone: true, .. }
        | State {
            writeback: true, ..
        } => Verdict::Nothing,
        State { dirty: true, .. } => again,
        State { mapped: true, .. } => Verdict::Leave(Why::Mapped),
        State {
            referenced: true, ..
        } => Verdict::Leave(Why::Referenced),
        _ => Verdict::Drop,
    }
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_drop))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;

    /// A state for each letter: locked, gone, writeback, dirty, mapped, referenced.
    fn state(letters: &str) -> State {
        let has = |letter| letters.bytes().any(|l| l == letter);

        State {
            locked: has(b'l'),
            gone: has(b'g'),
            writeback: has(b'w'),
            dirty: has(b'd'),
            mapped: has(b'm'),
            referenced: has(b'r'),
        }
    }

    #[test]
    fn verdicts() {
        let cases = [
            ("l", 0, Verdict::Drop),
            ("l", TRIES, Verdict::Drop),
            ("", 0, Verdict::Retry),
            ("gwdmr", 0, Verdict::Retry),
            ("", TRIES - 1, Verdict::Retry),
            ("", TRIES, Verdict::Leave(Why::Tried)),
            ("lg", 0, Verdict::Nothing),
            ("lgdmr", 0, Verdict::Nothing),
            ("lw", 0, Verdict::Nothing),
            ("lwd", 0, Verdict::Nothing),
            ("ld", 0, Verdict::Retry),
            ("ldm", 0, Verdict::Retry),
            ("ld", TRIES, Verdict::Leave(Why::Tried)),
            ("lm", 0, Verdict::Leave(Why::Mapped)),
            ("lmr", TRIES, Verdict::Leave(Why::Mapped)),
            ("lr", 0, Verdict::Leave(Why::Referenced)),
        ];

        for (letters, tries, expected) in cases {
            assert_eq!(decide(state(letters), tries), expected);
        }
    }

    #[test]
    fn only_a_locked_clean_unused_folio_is_dropped() {
        for bits in 0u32..64 {
            let bit = |at: u32| bits & (1 << at) != 0;
            let state = State {
                locked: bit(0),
                gone: bit(1),
                writeback: bit(2),
                dirty: bit(3),
                mapped: bit(4),
                referenced: bit(5),
            };

            for tries in 0..=TRIES {
                let dropped = decide(state, tries) == Verdict::Drop;

                assert_eq!(dropped, bits == 1);
            }
        }
    }
}
