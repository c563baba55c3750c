// SPDX-License-Identifier: GPL-2.0

//! How many uncached pages a `bdi_writeback` may have, dirty or under writeback: what its device
//! writes in a given time, which is measured while there is more to write than that.
//!
//! Pure: numbers in, numbers out. A device that is not kept busy says nothing about what it can do,
//! so only what leaves while writers are held counts. Then a bound that is too low for the device
//! shows as a rate that is lower than it could be; since what is written in `span` is more than
//! what is under way in the time of one request, the bound grows until the device is busy.

use super::units::{
    Instant,
    Micros,
    Pages,
    Rate, //
};

/// A bound is no lower: 4 MiB with pages of 4 KiB.
pub const LEAST: Pages = Pages(1024);

/// The bound of a device that nobody has measured is no higher: 16 MiB.
pub const FIRST: Pages = Pages(4096);

/// A rate is measured over at least this time.
const WINDOW: Micros = Micros::from_millis(10);

/// Completions that are no further apart came together: what they wrote was written before them.
const BURST: Micros = Micros(500);

/// A request is not thought to take longer: it may have been stopped on the way.
const SLOWEST: Micros = Micros::from_millis(1000);

/// Nor longer than this, or than four times what others took: blocks may have been allocated, and a
/// disk been spun up. On a device that is busy from then on there is no second.
const SLOW: Micros = Micros::from_millis(50);

/// Who runs later than this after it was let go had no CPU.
pub const LATE: Micros = Micros(100);

/// The bound of a device that nobody has measured, and whose queue takes so much: twice that, since
/// a fast device has written a gigabyte before it is measured.
pub fn first(queue: Pages) -> Pages {
    Pages(queue.0.saturating_mul(2).clamp(LEAST.0, FIRST.0))
}

/// What has been measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    rate: Rate,
    /// How long a request takes on a device that has no other.
    latency: Micros,
    /// Since when, and how much since then. From one completion to another, since many come
    /// together.
    window: Option<(Instant, Pages)>,
    /// Whether a writer was held since then.
    held: bool,
    /// When the only request of the device was submitted.
    alone: Option<Instant>,
    /// Completions that came together: the first, the last, and what they wrote.
    burst: Option<(Instant, Instant, Pages)>,
    /// What was written and has not made the bound lower.
    rest: usize,
    /// What is to be under writeback beside what the queue of the device takes.
    ahead: Pages,
    /// The most requests that the device was seen with of late.
    most: usize,
}

impl Control {
    /// What the device writes when it has enough to do.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How long a request takes on a device that has no other.
    pub fn latency(&self) -> Micros {
        self.latency
    }

    /// The bound, if the device is to have `span` to write it. Its queue takes `queue`.
    ///
    /// Twice the time of a request at least, or the device would have nothing to do while what was
    /// written is replaced.
    pub fn target(&self, span: Micros, queue: Pages) -> Pages {
        if self.rate == Rate::default() {
            return first(queue);
        }
        let span = span.max(Micros(self.latency.0.saturating_mul(2)));

        self.rate.in_time(span).max(LEAST)
    }

    /// The bound after one of `before`, since when `written` were written. It goes down by a
    /// quarter of that: else writers would wait for all that there is above it.
    pub fn follow(&mut self, before: Pages, written: Pages, span: Micros, queue: Pages) -> Pages {
        let written = self.rest.saturating_add(written.0);

        self.rest = written % 4;
        self.target(span, queue)
            .max(Pages(before.0.saturating_sub(written / 4)))
    }

    /// Somebody has to wait for the queue of the device, which has so many requests.
    pub fn waits(&mut self, requests: usize) {
        self.most = requests.max(self.most - self.most.div_ceil(16));
    }

    /// Who waited for it was let go; if it ran [`LATE`], the device has so many requests then.
    /// Returns how much may be under writeback from now on beside what the queue takes: a `good`
    /// request more each time that writers had no CPU until the device had little to do, and no
    /// more than the `bound`.
    ///
    /// Beside what it was seen with: others may share its tags, or keep them from it. Who is not
    /// late sees requests that have ended together, and not yet those that wait for them.
    pub fn let_go(&mut self, requests: Option<usize>, good: Pages, bound: Pages) -> Pages {
        self.ahead = if requests.is_some_and(|requests| requests < self.most.div_ceil(2)) {
            self.ahead.plus(good).min(bound)
        } else {
            Pages(self.ahead.0 - self.ahead.0.div_ceil(16))
        };
        self.ahead
    }

    /// A writer is held: there is more to write than the bound.
    pub fn held(&mut self) {
        self.held = true;
    }

    /// Writeback was started when none was under way; `alone` if the device had no other either.
    pub fn started(&mut self, now: Instant, alone: bool) {
        // Nobody wanted to write meanwhile.
        if self
            .burst
            .is_some_and(|(_, last, _)| now.since(last) > WINDOW)
        {
            self.burst = None;
            self.window = None;
            self.held = false;
        }
        self.alone = alone.then_some(now);
    }

    /// None was started after all.
    pub fn started_nothing(&mut self) {
        self.alone = None;
    }

    /// Whether what is written counts, though no writer is held.
    pub fn measures(&self) -> bool {
        self.alone.is_some() || self.burst.is_some() || self.window.is_some()
    }

    /// `pages` were written.
    pub fn written(&mut self, now: Instant, pages: Pages) {
        if let Some(then) = self.alone.take() {
            let most = Micros(self.latency.0.saturating_mul(4)).clamp(SLOW, SLOWEST);
            let took = now.since(then).min(most);

            // Up slowly: others may have been before it, on the way or in the device. Down by half:
            // it may have been another whose end nobody had told.
            self.latency = if self.latency.0 == 0 {
                took
            } else if took < self.latency {
                Micros(took.0 + (self.latency.0 - took.0) / 2)
            } else {
                Micros(self.latency.0 + (took.0 - self.latency.0) / 8)
            };
        }

        match self.burst.take() {
            Some((first, last, all)) if now.since(last) < BURST && now.since(first) < WINDOW => {
                self.burst = Some((first, now, all.plus(pages)));
                return;
            }
            Some((_, last, all)) => self.ended(last, all),
            None => (),
        }
        if self.held || self.window.is_some() {
            self.burst = Some((now, now, pages));
        }
    }

    /// A burst that wrote `pages` ended at `now`.
    fn ended(&mut self, now: Instant, pages: Pages) {
        let Some((start, before)) = self.window else {
            if self.held {
                self.window = Some((now, Pages(0)));
            }
            return;
        };
        let all = before.plus(pages);
        let time = now.since(start);

        if time < WINDOW.max(self.latency) {
            self.window = Some((start, all));
            return;
        }

        // What nobody waited for says nothing.
        if !core::mem::take(&mut self.held) {
            self.window = None;
            return;
        }

        let rate = Rate::of(all, time);

        self.rate = if self.rate == Rate::default() {
            rate
        } else {
            self.rate.towards(rate)
        };
        self.window = Some((now, Pages(0)));
    }
}

#[cfg_attr(
    CONFIG_DONTCACHE_RUST_KUNIT_TEST,
    macros::kunit_tests(dontcache_control)
)]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;

    const SPAN: Micros = Micros::from_millis(20);
    const QUEUE: Pages = Pages(usize::MAX);
    const MAX: usize = usize::MAX;

    #[derive(Clone, Copy)]
    enum Event {
        Held,
        Alone(usize),
        Idle(usize),
        Nothing,
        /// When, and how many pages.
        Written(usize, usize),
    }
    use Event::*;

    fn follow(mut control: Control, events: &[Event]) -> Control {
        for event in events {
            match *event {
                Held => control.held(),
                Alone(now) => control.started(Instant(now), true),
                Idle(now) => control.started(Instant(now), false),
                Nothing => control.started_nothing(),
                Written(now, pages) => {
                    control.written(Instant(now), Pages(pages));
                    // Each is one of its own.
                    if let Some((_, last, all)) = control.burst.take() {
                        control.ended(last, all);
                        if control.held || control.window.is_some() {
                            control.burst = Some((last, last, Pages(0)));
                        }
                    }
                }
            }
        }
        control
    }

    fn target(events: &[Event]) -> usize {
        follow(Control::default(), events).target(SPAN, QUEUE).0
    }

    /// A window of a hundred pages in each millisecond ended at 0.
    fn measured(latency: usize) -> Control {
        Control {
            rate: Rate::of(Pages(100), Micros(1000)),
            latency: Micros(latency),
            window: Some((Instant(0), Pages(0))),
            ..Control::default()
        }
    }

    /// The bound after that window and `events`.
    fn then(events: &[Event]) -> usize {
        follow(measured(0), events).target(SPAN, QUEUE).0
    }

    /// The latency, if it was 800 before.
    fn latency(events: &[Event]) -> usize {
        follow(measured(800), events).latency.0
    }

    #[test]
    fn target_is_what_is_written_in_the_span_and_not_below_the_least() {
        assert_eq!(target(&[]), 4096);
        assert_eq!(target(&[Held, Written(0, 0), Written(10_000, 512)]), 1024);
        assert_eq!(target(&[Held, Written(0, 0), Written(10_000, 513)]), 1025);
        assert_eq!(target(&[Held, Written(0, 0), Written(10_000, 1000)]), 2000);
    }

    #[test]
    fn first_bound_keeps_the_queue_full() {
        let first = |queue| Control::default().target(SPAN, Pages(queue)).0;

        for (queue, bound) in [
            (0, 1024),
            (512, 1024),
            (513, 1026),
            (2048, 4096),
            (2049, 4096),
        ] {
            assert_eq!(first(queue), bound);
        }
        assert_eq!(measured(0).target(SPAN, Pages(0)).0, 2000);
    }

    #[test]
    fn target_is_what_is_written_in_twice_the_latency() {
        assert_eq!(measured(10_000).target(SPAN, QUEUE).0, 2000);
        assert_eq!(measured(11_000).target(SPAN, QUEUE).0, 2200);
        assert_eq!(measured(MAX / 2 + 1).target(SPAN, QUEUE).0, MAX / 16_000);
        assert_eq!(measured(7).latency(), Micros(7));
        assert_eq!(measured(7).rate().in_time(Micros(1000)), Pages(100));
    }

    #[test]
    #[rustfmt::skip]
    fn window_is_from_a_completion_to_another() {
        // What the first has written was not written since.
        assert_eq!(target(&[Held, Written(0, 9000), Written(10_000, 1000)]), 2000);
        assert_eq!(target(&[Held, Written(0, 0), Written(9_999, 9000)]), 4096);
        assert_eq!(then(&[Held, Written(3, 500), Written(5, 500), Written(10_000, 1000)]), 2500);
        assert_eq!(target(&[Held, Written(0, 0), Written(20_000, 3000)]), 3000);
        assert_eq!(target(&[Held, Written(MAX - 4999, 0), Written(5000, 1000)]), 2000);
        // The next begins where it ended, with nothing.
        assert_eq!(then(&[Held, Written(10_000, 1000), Held, Written(20_000, 1000)]), 2000);
        assert_eq!(then(&[Held, Written(10_000, 1000), Held, Written(19_999, 9000)]), 2000);
        // Not below the time of a request, here 30 ms.
        assert_eq!(target(&[Alone(0), Held, Written(30_000, 0), Written(59_999, 9000)]), 4096);
        assert_eq!(target(&[Alone(0), Held, Written(30_000, 0), Written(60_000, 3000)]), 6000);
    }

    #[test]
    #[rustfmt::skip]
    fn window_without_a_held_writer_says_nothing() {
        assert_eq!(target(&[Written(0, 0), Written(10_000, 9000), Written(20_000, 9000)]), 4096);
        assert_eq!(then(&[Written(10_000, 9000)]), 2000);
        assert_eq!(then(&[Written(5000, 0), Held, Written(10_000, 2000)]), 2500);
        // Each window has to have one of its own.
        assert_eq!(then(&[Held, Written(10_000, 1000), Written(20_000, 9000)]), 2000);
        // The one after begins with a completion after a writer was held.
        assert_eq!(then(&[Written(10_000, 0), Held, Written(20_000, 9000)]), 2000);
        assert_eq!(
            then(&[Written(10_000, 0), Held, Written(11_000, 9), Written(21_000, 2000)]),
            2500,
        );
    }

    #[test]
    #[rustfmt::skip]
    fn window_in_which_nobody_wanted_to_write_says_nothing() {
        assert_eq!(then(&[Held, Written(5000, 500), Alone(15_000), Written(25_000, 4500)]), 2500);
        assert_eq!(then(&[Held, Written(5000, 500), Alone(15_001), Written(25_001, 4500)]), 2000);
        assert_eq!(then(&[Held, Written(5000, 500), Idle(15_001), Written(25_001, 4500)]), 2000);
    }

    /// The bound after completions in bursts, each when how many pages.
    fn bursts(written: impl Iterator<Item = (usize, usize)>) -> usize {
        let mut control = Control::default();

        for (now, pages) in written {
            control.held();
            control.written(Instant(now), Pages(pages));
        }
        control.target(SPAN, QUEUE).0
    }

    #[test]
    fn window_is_from_the_end_of_a_burst_to_that_of_another() {
        let some = [
            (0, 900),
            (499, 900),
            (5000, 100),
            (5400, 400),
            (10_499, 500),
        ];

        assert_eq!(bursts(some.into_iter()), 4096);
        assert_eq!(
            bursts(some.into_iter().chain([(10_998, 500), (30_000, 9)])),
            2856
        );
        assert_eq!(
            bursts(some.into_iter().chain([(10_999, 500), (30_000, 9)])),
            2000
        );
        // One that does not end is cut, and the next begins.
        assert_eq!(
            bursts((0..60).map(|nr| (400 * nr, if nr == 25 { 1040 } else { 40 }))),
            4000
        );
        assert_eq!(bursts((0..50).map(|nr| (400 * nr, 40))), 4096);
    }

    #[test]
    fn measures_as_long_as_something_may_come_of_it() {
        let mut control = Control::default();

        assert!(!control.measures());
        control.started(Instant(0), false);
        assert!(!control.measures());
        control.started(Instant(0), true);
        assert!(control.measures());
        // A latency, and nobody was held.
        control.written(Instant(700), Pages(1));
        assert!(!control.measures());
        control.held();
        control.written(Instant(2000), Pages(1));
        assert!(control.measures());
        assert!(measured(0).measures());
        // A burst, then a window, then two without who was held.
        control.written(Instant(4000), Pages(1));
        control.written(Instant(20_000), Pages(1));
        assert!(control.measures());
        control.written(Instant(40_000), Pages(1));
        control.written(Instant(60_000), Pages(1));
        assert!(!control.measures());
    }

    #[test]
    fn more_is_ahead_of_a_device_that_starves() {
        let mut control = Control::default();
        let ahead = |control: &mut Control, requests, bound| {
            control.let_go(requests, Pages(256), Pages(bound)).0
        };

        // Nobody counts its requests.
        control.waits(0);
        assert_eq!(ahead(&mut control, Some(0), 1024), 0);
        control.waits(1);
        assert_eq!(ahead(&mut control, Some(1), 1024), 0);
        assert_eq!(ahead(&mut control, Some(0), 1024), 256);
        control.waits(8);
        assert_eq!(ahead(&mut control, Some(4), 1024), 240);
        assert_eq!(ahead(&mut control, Some(3), 1024), 496);
        assert_eq!(ahead(&mut control, Some(3), 600), 600);
        assert_eq!(ahead(&mut control, None, 600), 562);
        // Others have its tags for long.
        for _ in 0..4 {
            control.waits(4);
        }
        assert_eq!(ahead(&mut control, Some(2), 600), 526);
        // Not for ever.
        for _ in 0..80 {
            ahead(&mut control, None, 1024);
        }
        assert_eq!(ahead(&mut control, None, 1024), 0);
    }

    #[test]
    #[rustfmt::skip]
    fn rate_goes_a_quarter_of_the_way() {
        assert_eq!(then(&[Held, Written(10_000, 2000)]), 2500);
        assert_eq!(then(&[Held, Written(10_000, 600)]), 1800);
        assert_eq!(then(&[Held, Written(10_000, 2000), Held, Written(20_000, 2000)]), 2875);
    }

    #[test]
    #[rustfmt::skip]
    fn latency_goes_down_by_half_and_up_slowly() {
        assert_eq!(follow(Control::default(), &[Alone(0), Written(700, 0)]).latency.0, 700);
        assert_eq!(latency(&[Alone(0), Written(700, 0)]), 750);
        assert_eq!(latency(&[Alone(0), Written(807, 0)]), 800);
        assert_eq!(latency(&[Alone(0), Written(1600, 0)]), 900);
        assert_eq!(latency(&[Alone(0), Written(50_000, 0)]), 6950);
        assert_eq!(latency(&[Alone(0), Written(0, 0), Alone(0), Written(1600, 0)]), 550);
        assert_eq!(latency(&[Alone(MAX - 99), Written(500, 0)]), 700);
    }

    #[test]
    fn latency_of_a_slow_request_is_not_all_that_it_took() {
        for (before, took, latency) in [
            (0, 50_000, 50_000),
            (0, 900_000, 50_000),
            (8000, 3_000_000, 13_250),
            (25_000, 900_000, 34_375),
            (40_000, 160_000, 55_000),
            (40_000, 900_000, 55_000),
            (600_000, 1_000_000, 650_000),
            (600_000, 3_000_000, 650_000),
        ] {
            let events = [Alone(0), Written(took, 0)];
            let after = follow(measured(before), &events).latency;

            assert_eq!(after, Micros(latency));
        }
    }

    #[test]
    fn bound_goes_down_by_a_quarter_of_what_is_written() {
        let mut control = measured(0);
        let mut follow =
            |before, written| control.follow(Pages(before), Pages(written), SPAN, QUEUE).0;

        assert_eq!(follow(1999, 0), 2000);
        assert_eq!(follow(5000, 4), 4999);
        assert_eq!(follow(5000, 3), 5000);
        assert_eq!(follow(5000, 1), 4999);
        assert_eq!(follow(2001, 400), 2000);
        assert_eq!(follow(MAX, MAX), MAX - MAX / 4);
        assert_eq!(follow(5, MAX), 2000);
    }

    #[test]
    #[rustfmt::skip]
    fn latency_is_that_of_a_request_without_others() {
        assert_eq!(latency(&[Written(700, 0)]), 800);
        assert_eq!(latency(&[Idle(0), Written(700, 0)]), 800);
        assert_eq!(latency(&[Alone(0), Nothing, Written(700, 0)]), 800);
        // Only the first completion is that of the request.
        assert_eq!(latency(&[Alone(0), Written(700, 0), Written(5000, 0)]), 750);
        assert_eq!(latency(&[Alone(0), Alone(300), Written(700, 0)]), 600);
    }
}
