// SPDX-License-Identifier: GPL-2.0

//! A thread that takes CPUs offline and brings them back.
//!
//! C header: [`include/linux/cpu.h`](srctree/include/linux/cpu.h)

use super::{
    random::Random,
    shared::Shared,
    thread::{
        Run,
        Stop, //
    }, //
};
use kernel::{
    cpu::nr_cpu_ids,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// CPU 0 stays, and so do CPUs beyond a bitmap of those that are offline.
const LIMIT: u32 = 64;

/// How often to try to bring a CPU back in the end.
const TRIES: u32 = 10;

pub(crate) struct Hotplug {
    shared: Arc<Shared>,
}

impl Hotplug {
    /// Whether the kernel and the machine can do this at all.
    pub(crate) fn possible() -> bool {
        cfg!(CONFIG_HOTPLUG_CPU) && (1..nr_cpu_ids()).any(exists)
    }

    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: shared.clone(),
        }
    }
}

impl Run for Hotplug {
    fn run(&self, stop: &Stop) {
        let mut random = Random::new(self.shared.params.seed, u32::MAX);
        let last = nr_cpu_ids().min(LIMIT);
        let mut down = 0u64;

        if last < 2 {
            return;
        }
        while !stop.requested() {
            let cpu = 1 + random.below(last - 1);
            let bit = 1u64 << cpu;

            if !exists(cpu) {
                continue;
            }
            // Who takes offline what is offline, or the last but one, is refused.
            if down & bit != 0 {
                if online(cpu) {
                    down &= !bit;
                }
            } else if offline(cpu) {
                down |= bit;
                self.shared.stats.offlined.inc();
            }
            // Storms, with a pause now and then.
            if random.once_in(8) {
                fsleep(Delta::from_millis(i64::from(random.below(300))));
            } else {
                fsleep(Delta::from_millis(1));
            }
        }

        for cpu in 1..last {
            if down & (1u64 << cpu) != 0 && !(0..TRIES).any(|_| online(cpu)) {
                self.shared.stats.not_onlined.inc();
            }
        }
    }
}

/// Whether there is such a CPU: numbers without one are possible.
fn exists(cpu: u32) -> bool {
    // SAFETY: May be called with any number.
    unsafe { !kernel::bindings::get_cpu_device(cpu).is_null() }
}

/// Takes `cpu`, which exists, offline; [`false`] if that is refused. May sleep.
#[cfg(CONFIG_HOTPLUG_CPU)]
fn offline(cpu: u32) -> bool {
    // SAFETY: The caller has checked that the CPU has a device.
    unsafe { kernel::bindings::remove_cpu(cpu) == 0 }
}

/// Brings `cpu` back, which [`offline`] took. May sleep.
#[cfg(CONFIG_HOTPLUG_CPU)]
fn online(cpu: u32) -> bool {
    // SAFETY: The CPU had a device when it was taken offline, and devices of CPUs stay.
    unsafe { kernel::bindings::add_cpu(cpu) == 0 }
}

#[cfg(not(CONFIG_HOTPLUG_CPU))]
fn offline(_cpu: u32) -> bool {
    false
}

#[cfg(not(CONFIG_HOTPLUG_CPU))]
fn online(_cpu: u32) -> bool {
    false
}
