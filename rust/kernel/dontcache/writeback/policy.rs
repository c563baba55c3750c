// SPDX-License-Identifier: GPL-2.0

//! What has to follow an uncached write: nothing, writeback of its range, or a kick.
//!
//! Pure: numbers in, a [`Decision`] out. A new policy is a new arm in [`decide`].

/// What `RWF_DONTCACHE` does after a write.
///
/// The numbers are not an interface; users see the names only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// Write the range at once. Kernels 6.14 to 7.1.
    Flush = 0,
    /// Write the range, capped to the pages just written, unless the mapping has writeback in
    /// progress. After `RWF_DONTCACHE_LAZY` as proposed for 7.1.
    Lazy = 1,
    /// Wake the flusher of the mapping's device. Kernels from 7.2.
    Kick = 2,
    /// Write what makes a good request at once, gather what is small, and let writers wait while
    /// more is dirty or under writeback than the device writes in some milliseconds.
    Paced = 3,
}

impl Policy {
    /// In the order of their numbers.
    pub const ALL: &'static [Policy] = if cfg!(CONFIG_DONTCACHE_PACED) {
        &[Policy::Flush, Policy::Lazy, Policy::Kick, Policy::Paced]
    } else {
        &[Policy::Flush, Policy::Lazy, Policy::Kick]
    };

    /// What applies unless somebody chose otherwise: what `CONFIG_DONTCACHE_POLICY_*` says, so
    /// that a kernel with another language can have the policy of before.
    pub const DEFAULT: Policy = if cfg!(CONFIG_DONTCACHE_POLICY_KICK) {
        Policy::Kick
    } else if cfg!(CONFIG_DONTCACHE_POLICY_LAZY) {
        Policy::Lazy
    } else if cfg!(CONFIG_DONTCACHE_POLICY_PACED) {
        Policy::Paced
    } else {
        Policy::Flush
    };

    /// The name that the sysctl uses.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Flush => "flush",
            Policy::Lazy => "lazy",
            Policy::Kick => "kick",
            Policy::Paced => "paced",
        }
    }

    /// The policy of that name: the exact name, in lower case.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::dontcache::writeback::policy::Policy;
    ///
    /// assert_eq!(Policy::from_name(b"lazy"), Some(Policy::Lazy));
    /// assert_eq!(Policy::from_name(b"Lazy"), None);
    /// ```
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|policy| policy.name().as_bytes() == name)
    }

    /// The policy of that number; [`Policy::DEFAULT`] for one that is none.
    #[inline]
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Policy::Flush,
            1 => Policy::Lazy,
            2 => Policy::Kick,
            3 => Policy::Paced,
            _ => Policy::DEFAULT,
        }
    }
}

/// One finished write, as far as the decision depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Offset of the first byte written, in bytes.
    pub first: i64,
    /// Offset of the last byte written, in bytes; inclusive.
    pub last: i64,
    /// Bytes written. Zero or negative for a write that failed.
    pub bytes: isize,
    /// The mapping has folios under writeback.
    pub busy: bool,
    /// The writer must not sleep (`IOCB_NOWAIT`), and to submit writeback may sleep.
    pub nowait: bool,
}

/// What to do after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing was written.
    Nothing,
    /// Leave it to a later write or to background writeback: the mapping is busy.
    Skip,
    /// Wake the flusher, without writing anything here.
    Kick,
    /// Write the range, at most that many pages. Positive.
    Start(isize),
    /// Leave it to what paces writers.
    Pace,
}

impl Decision {
    /// What `include/trace/events/dontcache.h` has names for.
    pub const fn number(self) -> u32 {
        match self {
            Decision::Nothing => 0,
            Decision::Skip => 1,
            Decision::Kick => 2,
            Decision::Start(_) => 3,
            Decision::Pace => 4,
        }
    }
}

/// The pages that `bytes` fill, rounded up; 0 for none or a negative count.
///
/// A page is `1 << page_shift` bytes. The result is the proportional cap: a write that is not
/// aligned touches one page more, and that trailing partial page is left for the next write.
pub const fn pages(bytes: isize, page_shift: u32) -> isize {
    if bytes <= 0 {
        return 0;
    }

    // Not (bytes + PAGE_SIZE - 1) >> page_shift: that overflows for the largest counts.
    ((bytes - 1) >> page_shift) + 1
}

/// Decides what follows `write` under `policy`.
///
/// A page is `1 << page_shift` bytes.
///
/// # Examples
///
/// ```
/// use kernel::dontcache::writeback::policy::{decide, Decision, Policy, Write};
///
/// let write = Write { first: 4096, last: 12287, bytes: 8192, busy: true, nowait: false };
///
/// // Somebody writes this file back already.
/// assert_eq!(decide(Policy::Lazy, &write, 12), Decision::Skip);
/// assert_eq!(decide(Policy::Lazy, &Write { busy: false, ..write }, 12), Decision::Start(2));
/// ```
pub fn decide(policy: Policy, write: &Write, page_shift: u32) -> Decision {
    match policy {
        _ if write.bytes <= 0 => Decision::Nothing,
        // The flusher is told of no range.
        Policy::Kick => Decision::Kick,
        _ if write.first < 0 || write.last < write.first => Decision::Nothing,
        Policy::Paced => Decision::Pace,
        Policy::Lazy if write.busy => Decision::Skip,
        // Submission takes folio locks and waits for requests. The flusher may, this task may not.
        Policy::Lazy | Policy::Flush if write.nowait => Decision::Kick,
        Policy::Lazy => Decision::Start(pages(write.bytes, page_shift)),
        Policy::Flush => Decision::Start(isize::MAX),
    }
}

#[cfg_attr(
    CONFIG_DONTCACHE_RUST_KUNIT_TEST,
    macros::kunit_tests(dontcache_policy)
)]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;

    const SHIFT: u32 = 12;
    const PAGE: isize = 1 << SHIFT;
    const MAX: isize = isize::MAX;

    struct PagesTest {
        bytes: isize,
        pages: isize,
    }

    fn check_pages(t: PagesTest) -> bool {
        pages(t.bytes, SHIFT) == t.pages
    }

    #[test]
    #[rustfmt::skip]
    fn cap_is_bytes_rounded_up_to_pages() {
        assert!(check_pages(PagesTest { bytes: isize::MIN, pages: 0 }));
        assert!(check_pages(PagesTest { bytes: -PAGE, pages: 0 }));
        assert!(check_pages(PagesTest { bytes: -1, pages: 0 }));
        assert!(check_pages(PagesTest { bytes: 0, pages: 0 }));
        assert!(check_pages(PagesTest { bytes: 1, pages: 1 }));
        assert!(check_pages(PagesTest { bytes: 511, pages: 1 }));
        assert!(check_pages(PagesTest { bytes: PAGE - 1, pages: 1 }));
        assert!(check_pages(PagesTest { bytes: PAGE, pages: 1 }));
        assert!(check_pages(PagesTest { bytes: PAGE + 1, pages: 2 }));
        assert!(check_pages(PagesTest { bytes: 2 * PAGE - 1, pages: 2 }));
        assert!(check_pages(PagesTest { bytes: 2 * PAGE, pages: 2 }));
        assert!(check_pages(PagesTest { bytes: 256 * PAGE, pages: 256 }));
        assert!(check_pages(PagesTest { bytes: 256 * PAGE + 1, pages: 257 }));
        assert!(check_pages(PagesTest { bytes: i32::MAX as isize, pages: 1 << 19 }));
    }

    #[test]
    fn cap_of_the_largest_counts_does_not_overflow() {
        for shift in [12, 14, 16] {
            let largest = 1isize << (isize::BITS - 1 - shift);

            assert_eq!(pages(MAX, shift), largest);
            assert_eq!(pages(MAX - 1, shift), largest);
            // MAX is one byte short of a page boundary.
            assert_eq!(pages(MAX - (1 << shift) + 2, shift), largest);
            assert_eq!(pages(MAX - (1 << shift) + 1, shift), largest - 1);
        }
    }

    struct DecideTest {
        policy: Policy,
        first: i64,
        last: i64,
        bytes: isize,
        busy: bool,
        nowait: bool,
        decision: Decision,
    }

    /// An aligned write of one page at the start of an idle mapping by a task that may sleep.
    const LAZY: DecideTest = DecideTest {
        policy: Policy::Lazy,
        first: 0,
        last: PAGE as i64 - 1,
        bytes: PAGE,
        busy: false,
        nowait: false,
        decision: Decision::Start(1),
    };
    const FLUSH: DecideTest = DecideTest {
        policy: Policy::Flush,
        decision: Decision::Start(MAX),
        ..LAZY
    };
    const KICK: DecideTest = DecideTest {
        policy: Policy::Kick,
        decision: Decision::Kick,
        ..LAZY
    };

    fn check(t: DecideTest) -> bool {
        let write = Write {
            first: t.first,
            last: t.last,
            bytes: t.bytes,
            busy: t.busy,
            nowait: t.nowait,
        };

        decide(t.policy, &write, SHIFT) == t.decision
    }

    #[test]
    #[rustfmt::skip]
    fn each_policy_decides_by_what_it_looks_at() {
        assert!(check(LAZY));
        assert!(check(FLUSH));
        assert!(check(KICK));

        // Only lazy looks at writeback in progress.
        assert!(check(DecideTest { busy: true, decision: Decision::Skip, ..LAZY }));
        assert!(check(DecideTest { busy: true, ..FLUSH }));
        assert!(check(DecideTest { busy: true, ..KICK }));

        // No policy submits for a task that must not sleep.
        assert!(check(DecideTest { nowait: true, decision: Decision::Kick, ..LAZY }));
        assert!(check(DecideTest { nowait: true, decision: Decision::Kick, ..FLUSH }));
        assert!(check(DecideTest { nowait: true, ..KICK }));
        assert!(check(DecideTest { nowait: true, busy: true, decision: Decision::Skip, ..LAZY }));
        assert!(check(DecideTest { nowait: true, busy: true, decision: Decision::Kick, ..FLUSH }));
        assert!(check(DecideTest { nowait: true, busy: true, ..KICK }));
    }

    #[test]
    #[rustfmt::skip]
    fn lazy_caps_to_the_bytes_and_not_to_the_range() {
        // One byte more, one byte less, and across a page boundary.
        let two = Decision::Start(2);
        assert!(check(DecideTest { last: 4096, bytes: 4097, decision: two, ..LAZY }));
        assert!(check(DecideTest { last: 4094, bytes: 4095, ..LAZY }));
        assert!(check(DecideTest { first: 4095, last: 4096, bytes: 2, ..LAZY }));
        assert!(check(DecideTest { first: 1, last: 4096, ..LAZY }));
        assert!(check(DecideTest { first: 512, last: 1023, bytes: 512, ..LAZY }));
        assert!(check(DecideTest {
            first: 100, last: 100 + (1 << 20) - 1, bytes: 1 << 20,
            decision: Decision::Start(256), ..LAZY
        }));
        // The last page of the largest file, and the largest count.
        assert!(check(DecideTest { first: i64::MAX - 4095, last: i64::MAX, ..LAZY }));
        assert!(check(DecideTest {
            last: i64::MAX - 1, bytes: MAX, decision: Decision::Start(pages(MAX, SHIFT)), ..LAZY
        }));
    }

    #[test]
    #[rustfmt::skip]
    fn nothing_follows_a_write_of_nothing() {
        const NOTHING: Decision = Decision::Nothing;

        for bytes in [0, -1, -5, isize::MIN] {
            assert!(check(DecideTest { bytes, decision: NOTHING, ..LAZY }));
            assert!(check(DecideTest { bytes, decision: NOTHING, ..FLUSH }));
            assert!(check(DecideTest { bytes, decision: NOTHING, ..KICK }));
        }
        // Empty, inverted, and before the start of the file.
        let ranges = [(4096, 4095), (1, 0), (8192, 0), (i64::MAX, 0), (-4096, -1), (-1, 4094)];

        for (first, last) in ranges {
            assert!(check(DecideTest { first, last, decision: NOTHING, ..LAZY }));
            assert!(check(DecideTest { first, last, decision: NOTHING, ..FLUSH }));
            // The flusher is told of no range.
            assert!(check(DecideTest { first, last, ..KICK }));
        }
        // A single byte is a range.
        assert!(check(DecideTest { first: 0, last: 0, bytes: 1, ..LAZY }));
    }

    #[test]
    fn decisions_have_the_numbers_of_the_tracepoint() {
        let decisions = [
            Decision::Nothing,
            Decision::Skip,
            Decision::Kick,
            Decision::Start(7),
            Decision::Pace,
        ];

        for (nr, decision) in decisions.into_iter().enumerate() {
            assert!(decision.number() == nr as u32);
        }
    }

    #[test]
    fn names_and_numbers_are_exact() {
        for &policy in Policy::ALL {
            assert!(Policy::from_name(policy.name().as_bytes()) == Some(policy));
            assert!(Policy::from_number(policy as u32) == policy);
        }
        for name in ["", "Lazy", "lazy ", " lazy", "laz", "lazyy", "1", "kick\n"] {
            assert!(Policy::from_name(name.as_bytes()).is_none());
        }
        assert!(Policy::from_number(3) == Policy::Paced);
        assert!(Policy::from_number(4) == Policy::DEFAULT);
        assert!(Policy::from_number(u32::MAX) == Policy::DEFAULT);
    }
}
