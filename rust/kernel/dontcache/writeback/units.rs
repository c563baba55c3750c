// SPDX-License-Identifier: GPL-2.0

//! Pages, time and what a device writes of one in the other: types that do not mix.
//!
//! Pure. Words of the machine, so that 32-bit kernels need no division of what is longer.

/// A number of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pages(pub usize);

impl Pages {
    /// The sum, or the largest number.
    pub fn plus(self, other: Pages) -> Pages {
        Pages(self.0.saturating_add(other.0))
    }
}

/// A span of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub usize);

impl Micros {
    /// That many milliseconds.
    pub const fn from_millis(millis: usize) -> Micros {
        Micros(millis.saturating_mul(1000))
    }
}

/// A point in time. They are compared to near ones only, so a word may overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant(pub usize);

impl Instant {
    /// So much later.
    pub fn plus(self, time: Micros) -> Instant {
        Instant(self.0.wrapping_add(time.0))
    }

    /// The time since `earlier`, 0 if that is later.
    pub fn since(self, earlier: Instant) -> Micros {
        let micros = self.0.wrapping_sub(earlier.0);

        Micros(if micros > usize::MAX / 2 { 0 } else { micros })
    }
}

/// What a device writes, in sixteenths of a page in a millisecond: 4 MB/s are 16 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(usize);

impl Rate {
    /// `pages` in `time`. Not what nobody has measured, however slow.
    pub fn of(pages: Pages, time: Micros) -> Rate {
        Rate((pages.0.saturating_mul(16_000) / time.0.max(1)).max(1))
    }

    /// What is written in `time`.
    pub fn in_time(self, time: Micros) -> Pages {
        Pages(self.0.saturating_mul(time.0) / 16_000)
    }

    /// A quarter of the way from here to `other`.
    pub fn towards(self, other: Rate) -> Rate {
        if other > self {
            Rate(self.0 + (other.0 - self.0).div_ceil(4))
        } else {
            Rate(self.0 - (self.0 - other.0) / 4)
        }
    }
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_units))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;

    const MAX: usize = usize::MAX;

    fn since(now: usize, earlier: usize) -> usize {
        Instant(now).since(Instant(earlier)).0
    }

    fn towards(from: usize, to: usize) -> usize {
        Rate(from).towards(Rate(to)).0
    }

    #[test]
    fn sums_and_spans_end_at_the_largest_word() {
        assert_eq!(Pages(1).plus(Pages(2)), Pages(3));
        assert_eq!(Pages(MAX - 1).plus(Pages(2)), Pages(MAX));
        assert_eq!(Micros::from_millis(20), Micros(20_000));
        assert_eq!(Micros::from_millis(MAX / 1000), Micros(MAX / 1000 * 1000));
        assert_eq!(Micros::from_millis(MAX / 1000 + 1), Micros(MAX));
    }

    #[test]
    fn time_goes_on_where_the_word_overflows() {
        assert_eq!(since(7, 7), 0);
        assert_eq!(since(8, 7), 1);
        assert_eq!(since(7, 8), 0);
        assert_eq!(Instant(7).plus(Micros(2)), Instant(9));
        assert_eq!(Instant(MAX - 1).plus(Micros(4)), Instant(2));
        assert_eq!(since(2, MAX - 1), 4);
        assert_eq!(since(MAX / 2, 0), MAX / 2);
        assert_eq!(since(MAX / 2 + 1, 0), 0);
    }

    #[test]
    fn rate_is_in_sixteenths_not_nothing() {
        assert_eq!(Rate::of(Pages(0), Micros(1)), Rate(1));
        assert_eq!(Rate::of(Pages(1), Micros(1000)), Rate(16));
        assert_eq!(Rate::of(Pages(2), Micros(16_001)), Rate(1));
        assert_eq!(Rate::of(Pages(1), Micros(16_001)), Rate(1));
        // Completions may come at one time.
        assert_eq!(Rate::of(Pages(2), Micros(0)), Rate(32_000));
        assert_eq!(Rate::of(Pages(MAX), Micros(16_000)), Rate(MAX / 16_000));

        assert_eq!(Rate(16).in_time(Micros(1000)), Pages(1));
        assert_eq!(Rate(16).in_time(Micros(999)), Pages(0));
        assert_eq!(Rate(MAX / 2 + 1).in_time(Micros(2)), Pages(MAX / 16_000));
    }

    #[test]
    fn rate_goes_a_quarter_and_gets_up_to_the_end() {
        assert_eq!(towards(1600, 3200), 2000);
        assert_eq!(towards(7, 8), 8);
        assert_eq!(towards(8, 8), 8);
        assert_eq!(towards(0, MAX), MAX / 4 + 1);
        assert_eq!(towards(1600, 800), 1400);
        assert_eq!(towards(4, 0), 3);
        assert_eq!(towards(3, 0), 3);
    }
}
