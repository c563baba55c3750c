// SPDX-License-Identifier: GPL-2.0

//! What happened, and what should not have.

use super::context::Context;
use kernel::{
    fmt,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// A counter that any context adds to.
pub(crate) struct Counter(Atomic<i64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    pub(crate) fn inc(&self) {
        self.0.add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// The largest of some values.
pub(crate) struct Largest(Atomic<i64>);

impl Largest {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    pub(crate) fn note(&self, value: i64) {
        let mut old = self.0.load(Relaxed);

        while value > old {
            match self.0.cmpxchg(old, value, Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Returns it and starts anew.
    pub(crate) fn take(&self) -> i64 {
        self.0.xchg(0, Relaxed)
    }
}

/// All counters.
pub(crate) struct Stats {
    // How many times bio_endio() was called, by context.
    hard: Counter,
    soft: Counter,
    atomic: Counter,
    task: Counter,

    // Callbacks, and what they were about.
    pub(crate) ended: Counter,
    pub(crate) chained: Counter,
    pub(crate) resubmitted: Counter,
    pub(crate) slept: Counter,
    pub(crate) offlined: Counter,
    /// From bio_endio() to the callback, in nanoseconds.
    pub(crate) latency: Largest,

    // What must not happen.
    pub(crate) in_atomic: Counter,
    pub(crate) twice: Counter,
    pub(crate) deferred: Counter,
    pub(crate) linked: Counter,
    pub(crate) status: Counter,
    pub(crate) lost: Counter,
    pub(crate) not_onlined: Counter,

    /// Fails only on request.
    pub(crate) disordered: Counter,
}

impl Stats {
    pub(crate) const fn new() -> Self {
        Self {
            hard: Counter::new(),
            soft: Counter::new(),
            atomic: Counter::new(),
            task: Counter::new(),
            ended: Counter::new(),
            chained: Counter::new(),
            resubmitted: Counter::new(),
            slept: Counter::new(),
            offlined: Counter::new(),
            latency: Largest::new(),
            in_atomic: Counter::new(),
            twice: Counter::new(),
            deferred: Counter::new(),
            linked: Counter::new(),
            status: Counter::new(),
            lost: Counter::new(),
            not_onlined: Counter::new(),
            disordered: Counter::new(),
        }
    }

    /// The counter of bios that are finished in `context`.
    pub(crate) fn finished(&self, context: Context) -> &Counter {
        match context {
            Context::Hard => &self.hard,
            Context::Soft => &self.soft,
            Context::Atomic => &self.atomic,
            Context::Task => &self.task,
        }
    }

    /// How many callbacks were called.
    pub(crate) fn ended(&self) -> i64 {
        self.ended.get()
    }

    /// How many errors there were; bios out of order are some if `order`.
    pub(crate) fn errors(&self, order: bool) -> i64 {
        let errors = [
            &self.in_atomic,
            &self.twice,
            &self.deferred,
            &self.linked,
            &self.status,
            &self.lost,
            &self.not_onlined,
        ];
        let disordered = if order { self.disordered.get() } else { 0 };

        errors
            .iter()
            .fold(disordered, |sum, error| sum.wrapping_add(error.get()))
    }

    /// Something that a whole run should have done and that this one has not.
    pub(crate) fn idle(&self, hotplug: bool) -> Option<&'static str> {
        let wanted = [
            (&self.hard, "no bio was finished in a hard interrupt"),
            (&self.soft, "no bio was finished in a softirq"),
            (&self.atomic, "no bio was finished in an atomic region"),
            (&self.task, "no bio was finished in a task"),
            (&self.chained, "no bio was chained"),
            (&self.resubmitted, "no bio was finished again"),
            (&self.slept, "no callback slept"),
        ];

        if hotplug && self.offlined.get() == 0 {
            return Some("no CPU went offline");
        }
        wanted
            .iter()
            .find(|(counter, _)| counter.get() == 0)
            .map(|(_, reason)| *reason)
    }
}

/// One line, without the latency, which is to be read once.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ended {} hard {} soft {} atomic {} task {} chained {} resubmitted {} slept {} \
             offline {}",
            self.ended.get(),
            self.hard.get(),
            self.soft.get(),
            self.atomic.get(),
            self.task.get(),
            self.chained.get(),
            self.resubmitted.get(),
            self.slept.get(),
            self.offlined.get(),
        )
    }
}

/// What went wrong, in words.
pub(crate) struct Errors<'a>(pub(crate) &'a Stats);

impl fmt::Display for Errors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in atomic context, {} twice, {} lost, {} deferred in a task, {} still linked, \
             {} with an error, {} CPUs not online again, {} out of order",
            self.0.in_atomic.get(),
            self.0.twice.get(),
            self.0.lost.get(),
            self.0.deferred.get(),
            self.0.linked.get(),
            self.0.status.get(),
            self.0.not_onlined.get(),
            self.0.disordered.get(),
        )
    }
}
