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
    /// `pages` in `time`.
    pub fn of(pages: Pages, time: Micros) -> Rate {
        Rate(pages.0.saturating_mul(16_000) / time.0.max(1))
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
