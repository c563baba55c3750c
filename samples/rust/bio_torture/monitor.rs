// SPDX-License-Identifier: GPL-2.0

//! The thread that runs the others, prints a line a second, and has the last word.

use super::{
    driver::Driver,
    hotplug::Hotplug,
    shared::Shared,
    stats::Errors,
    thread::{
        Run,
        Stop,
        Thread, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};

const NSEC_PER_SEC: i64 = 1_000_000_000;

pub(crate) struct Monitor {
    shared: Arc<Shared>,
    drivers: KVec<Arc<Driver>>,
    hotplug: Arc<Hotplug>,
}

/// What a run needs, until it is dropped: that joins the threads.
struct Threads {
    _drivers: KVec<Thread<Driver>>,
    _hotplug: Option<Thread<Hotplug>>,
}

impl Monitor {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        drivers: &[Arc<Driver>],
        hotplug: Arc<Hotplug>,
    ) -> Result<Self> {
        let mut copy = KVec::with_capacity(drivers.len(), GFP_KERNEL)?;

        for driver in drivers {
            copy.push(driver.clone(), GFP_KERNEL)?;
        }
        Ok(Self {
            shared: shared.clone(),
            drivers: copy,
            hotplug,
        })
    }

    fn hotplug(&self) -> bool {
        self.shared.params.hotplug && Hotplug::possible()
    }

    fn start(&self) -> Result<Threads> {
        let mut drivers = KVec::with_capacity(self.drivers.len(), GFP_KERNEL)?;
        let mut hotplug = None;

        for driver in &self.drivers {
            drivers.push(
                Thread::spawn(c"bio_torture_io", driver.clone())?,
                GFP_KERNEL,
            )?;
        }
        if self.hotplug() {
            hotplug = Some(Thread::spawn(c"bio_torture_hp", self.hotplug.clone())?);
        }
        Ok(Threads {
            _drivers: drivers,
            _hotplug: hotplug,
        })
    }

    fn errors(&self) -> i64 {
        self.shared.stats.errors(self.shared.params.order)
    }

    fn print(&self) {
        let stats = &self.shared.stats;

        pr_info!(
            "{} s: {} max {} us errors {} disordered {}\n",
            self.shared.now() / NSEC_PER_SEC,
            stats,
            stats.latency.take() / 1000,
            self.errors(),
            stats.disordered.get(),
        );
    }

    fn check_lost(&self) {
        let stall = i64::from(self.shared.params.stall).wrapping_mul(NSEC_PER_SEC);

        for driver in &self.drivers {
            driver.check_lost(stall);
        }
    }

    /// Prints lines until the time is over or somebody unloads the module; [`true`] for the former.
    fn watch(&self, stop: &Stop) -> bool {
        let end = i64::from(self.shared.params.seconds).wrapping_mul(NSEC_PER_SEC);
        let mut next = NSEC_PER_SEC;

        loop {
            if stop.requested() {
                return false;
            }
            if end != 0 && self.shared.now() >= end {
                return true;
            }
            fsleep(Delta::from_millis(50));
            if self.shared.now() >= next {
                next = next.wrapping_add(NSEC_PER_SEC);
                self.check_lost();
                self.print();
            }
        }
    }

    /// Waits until all bios have ended, or have stalled.
    fn settle(&self) {
        while self.shared.stats.lost.get() == 0
            && self.drivers.iter().any(|driver| driver.nr_out() > 0)
        {
            self.check_lost();
            fsleep(Delta::from_millis(10));
        }
    }
}

impl Run for Monitor {
    fn run(&self, stop: &Stop) {
        let params = &self.shared.params;

        pr_info!(
            "--- Start of test: seconds={} seed={} hotplug={} order={} stall={} devices={}\n",
            params.seconds,
            params.seed,
            self.hotplug(),
            params.order,
            params.stall,
            params.devices,
        );

        let threads = self.start();
        let started = threads.is_ok();
        let whole = started && self.watch(stop);

        // Joins them.
        drop(threads);
        self.settle();
        self.print();

        let idle = self.shared.stats.idle(self.hotplug()).filter(|_| whole);

        // The one line that decides, for who reads the log.
        if !started {
            pr_alert!("--- End of test: FAILURE: no threads\n");
        } else if self.errors() != 0 {
            pr_alert!("--- End of test: FAILURE: {}\n", Errors(&self.shared.stats));
        } else if let Some(reason) = idle {
            pr_alert!("--- End of test: FAILURE: {}\n", reason);
        } else {
            pr_alert!("--- End of test: SUCCESS\n");
        }
    }
}
