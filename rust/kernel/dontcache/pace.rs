// SPDX-License-Identifier: GPL-2.0

//! When a worker that has nothing left runs again: at the next bio, or some time after it.
//!
//! Pure: times are numbers of jiffies that wrap, passed in.
//!
//! Waking a worker costs more than what it does for one bio. If bios come often, and nobody waits
//! for them, it pays to let some gather. The rules:
//!
//! - Idle, the next bio wakes the worker. No timer is involved, and nothing is later than it was.
//! - A run soon after another, with nobody waiting for writeback, makes the worker gather: it
//!   sleeps for a jiffy, and longer if that gathers few, up to [`longest()`]. A budget of bios
//!   wakes it before that.
//! - One bio or none in that time: idle again.
//! - Somebody begins to wait for writeback: the worker runs at once and stays idle for
//!   [`longest()`]. So no waiter is made to wait for others' bios to come.

/// How many bios a run is to find after gathering.
pub const TARGET: usize = 32;

/// The hundredth part of a second, in jiffies of a kernel with `hz` of them.
pub const fn longest(hz: usize) -> usize {
    if hz < 100 {
        1
    } else {
        hz / 100
    }
}

/// What the worker does until its next run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rest {
    /// Sleeps until a bio comes.
    Idle,
    /// Gathers bios for that many jiffies.
    Gather(usize),
}

/// The state of one worker.
pub struct Pace {
    /// The jiffy of the last run.
    last: usize,
    /// The jiffy before which the worker does not gather.
    until: usize,
    /// For how long it gathered, in jiffies; 0 if it was idle.
    rest: usize,
    /// The longest that it gathers, in jiffies.
    longest: usize,
}

impl Pace {
    /// A worker that has not run yet, in a kernel with `hz` jiffies a second.
    pub const fn new(hz: usize, now: usize) -> Self {
        let longest = longest(hz);

        Self {
            last: now.wrapping_sub(2 * longest),
            until: now,
            rest: 0,
            longest,
        }
    }

    /// Decides what follows when `nr` bios were completed and none are left, at `now`.
    ///
    /// `hurried` tells that the worker was woken while it gathered, for somebody who waits.
    #[inline]
    pub fn after_run(&mut self, nr: usize, now: usize, hurried: bool) -> Rest {
        let since = now.wrapping_sub(self.last);

        self.last = now;
        if self.rest != 0 {
            return self.after_gathering(nr, now, hurried);
        }
        // The other half of the circle is what lies before `until`.
        if since > 1 || now.wrapping_sub(self.until) > usize::MAX / 2 {
            return Rest::Idle;
        }
        self.gather(1)
    }

    #[cold]
    fn after_gathering(&mut self, nr: usize, now: usize, hurried: bool) -> Rest {
        if hurried {
            self.hurry(now);
            return Rest::Idle;
        }
        match nr {
            0 | 1 => {
                self.rest = 0;
                Rest::Idle
            }
            _ if nr < TARGET => self.gather(self.rest.saturating_mul(2)),
            _ if nr > 2 * TARGET => self.gather(self.rest / 2),
            _ => Rest::Gather(self.rest),
        }
    }

    fn gather(&mut self, jiffies: usize) -> Rest {
        self.rest = jiffies.clamp(1, self.longest);
        Rest::Gather(self.rest)
    }

    /// Tells that somebody waits: no gathering for the next [`longest()`] jiffies.
    pub fn hurry(&mut self, now: usize) {
        self.rest = 0;
        self.until = now.wrapping_add(self.longest);
    }
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_pace))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::{
        Rest::{
            Gather,
            Idle, //
        },
        *,
    };

    #[test]
    fn longest_is_ten_milliseconds() {
        for (hz, jiffies) in [(24, 1), (100, 1), (250, 2), (300, 3), (1000, 10)] {
            assert_eq!(longest(hz), jiffies);
        }
    }

    /// Runs at (jiffy, bios, hurried) and what follows them.
    fn check(start: usize, steps: &[(usize, usize, bool, Rest)]) {
        let mut pace = Pace::new(1000, start);

        for &(at, nr, hurried, expected) in steps {
            assert_eq!(
                pace.after_run(nr, start.wrapping_add(at), hurried),
                expected
            );
        }
    }

    /// At any time: jiffies begin five minutes before they wrap, on 32 bits.
    const STARTS: [usize; 4] = [0, 7, usize::MAX - 3, usize::MAX / 2];

    #[test]
    fn idle_while_runs_are_rare() {
        for start in STARTS {
            check(
                start,
                &[
                    (0, 1, false, Idle),
                    (2, 1, false, Idle),
                    (4, 100, false, Idle),
                    (1000, 1, false, Idle),
                ],
            );
        }
    }

    #[test]
    fn gathers_when_runs_are_close_and_until_they_are_not() {
        for start in STARTS {
            check(
                start,
                &[
                    (0, 1, false, Idle),
                    (0, 1, false, Gather(1)),
                    (1, 4, false, Gather(2)),
                    (3, 8, false, Gather(4)),
                    (7, 16, false, Gather(8)),
                    (15, 32, false, Gather(8)),
                    (23, 64, false, Gather(8)),
                    (31, 65, false, Gather(4)),
                    (35, 30, false, Gather(8)),
                    (43, 30, false, Gather(10)),
                    (53, 30, false, Gather(10)),
                    (63, 1, false, Idle),
                    (63, 1, false, Gather(1)),
                    (64, 0, false, Idle),
                ],
            );
        }
    }

    #[test]
    fn never_gathers_for_less_than_a_jiffy() {
        check(0, &[(0, 1, false, Idle), (0, 1, false, Gather(1))]);
        check(
            0,
            &[
                (0, 1, false, Idle),
                (1, 1, false, Gather(1)),
                (2, 100, false, Gather(1)),
            ],
        );
    }

    #[test]
    fn hurried_worker_stays_idle_for_a_while() {
        for start in STARTS {
            check(
                start,
                &[
                    (0, 1, false, Idle),
                    (1, 1, false, Gather(1)),
                    (1, 3, true, Idle),
                    (1, 3, false, Idle),
                    (2, 3, false, Idle),
                    (10, 3, false, Idle),
                    (11, 3, false, Gather(1)),
                ],
            );
        }
    }
}
