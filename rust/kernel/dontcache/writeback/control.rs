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

/// A rate is measured over at least this time.
const WINDOW: Micros = Micros::from_millis(10);

/// A request is not thought to take longer: it may have been stopped on the way.
const SLOWEST: Micros = Micros::from_millis(1000);

/// What has been measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    rate: Rate,
    /// How long a request takes on a device that has no other.
    latency: Micros,
    /// Since when, and how much since then. From one completion to another, since many come together.
    window: Option<(Instant, Pages)>,
    /// Whether a writer was held since then.
    held: bool,
    /// When the only request of the device was submitted.
    alone: Option<Instant>,
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

    /// The bound, if the device is to have `span` to write it.
    ///
    /// Twice the time of a request at least, or the device would have nothing to do while what was
    /// written is replaced.
    pub fn target(&self, span: Micros) -> Pages {
        let span = span.max(Micros(self.latency.0.saturating_mul(2)));

        self.rate.in_time(span).max(LEAST)
    }

    /// A writer is held: there is more to write than the bound.
    pub fn held(&mut self) {
        self.held = true;
    }

    /// Writeback was started when none was under way.
    pub fn started_alone(&mut self, now: Instant) {
        self.alone = Some(now);
    }

    /// None was started after all.
    pub fn started_nothing(&mut self) {
        self.alone = None;
    }

    /// `pages` were written.
    pub fn written(&mut self, now: Instant, pages: Pages) {
        if let Some(then) = self.alone.take() {
            let took = now.since(then).min(SLOWEST);

            // Up slowly: others may have been before it, on the way or in the device.
            self.latency = if self.latency.0 == 0 || took < self.latency {
                took
            } else {
                Micros(self.latency.0 + (took.0 - self.latency.0) / 8)
            };
        }

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
