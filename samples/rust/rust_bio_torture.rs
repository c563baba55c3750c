// SPDX-License-Identifier: GPL-2.0

//! Torture test of task-context bio completion.
//!
//! In the spirit of rcutorture: bios that have a callback, but no pages and only the address of a
//! device, are finished, by `bio_endio()`, in hard interrupts, softirqs, atomic regions of tasks
//! and plain tasks of all CPUs, while CPUs go offline and come back. The callbacks check what
//! filesystems rely on, and some of them sleep, finish their bio again, or end bios that others are
//! chained to.
//!
//! ```text
//!   driver (a thread for each CPU)               hotplug (a thread)     monitor (a thread)
//!      | arms slots: a bio, what its                takes CPUs             a line a second,
//!      | callback will do, chained bios             offline and back       finds lost bios,
//!      v                                                                   the verdict
//!   burst: finishes some of them, elsewhere
//!      |
//!   bio_endio()  ...  the engine under test  ...  callback: checks, and gives the slot back
//! ```
//!
//! It uses nothing of the engine but `bio_endio()` and `BIO_COMPLETE_IN_TASK`, so it tests
//! upstream's C code as well.

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};

mod bio_torture {
    pub(crate) mod burst;
    pub(crate) mod context;
    pub(crate) mod driver;
    pub(crate) mod hotplug;
    pub(crate) mod monitor;
    pub(crate) mod order;
    pub(crate) mod random;
    pub(crate) mod shared;
    pub(crate) mod slot;
    pub(crate) mod stats;
    pub(crate) mod thread;
}

use bio_torture::{
    context,
    driver::Driver,
    hotplug::Hotplug,
    monitor::Monitor,
    shared::{
        Params,
        Shared, //
    },
    thread::Thread, //
};

module! {
    type: BioTorture,
    name: "rust_bio_torture",
    authors: ["dontcache-rust"],
    description: "Torture test of task-context bio completion",
    license: "GPL",
    params: {
        seconds: u32 {
            default: 0,
            description: "How long to run; 0 (default) until the module is unloaded",
        },
        seed: u64 {
            default: 1,
            description: "Seed of all random decisions (default 1)",
        },
        hotplug: bool {
            default: true,
            description: "Take CPUs offline and online all the time (default true)",
        },
        order: bool {
            default: false,
            description: "Fail if bios of a CPU, context and device change order (default false)",
        },
        stall: u32 {
            default: 30,
            description: "Seconds after which a bio that has not ended counts as lost (default 30)",
        },
        bios: u32 {
            default: 64,
            description: "Bios of each driver thread (default 64)",
        },
        devices: u32 {
            default: 4,
            description: "Devices that bios seem to be of, one of which is none (default 4)",
        },
    },
}

struct BioTorture {
    shared: Arc<Shared>,
    drivers: KVec<Arc<Driver>>,
    /// [`None`] only while the module is unloaded.
    monitor: Option<Thread<Monitor>>,
}

impl kernel::Module for BioTorture {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let params = Params {
            seconds: *module_parameters::seconds.value_ref(),
            seed: *module_parameters::seed.value_ref(),
            hotplug: *module_parameters::hotplug.value_ref(),
            order: *module_parameters::order.value_ref(),
            stall: *module_parameters::stall.value_ref(),
            devices: *module_parameters::devices.value_ref(),
        };
        let shared = Arc::new(Shared::new(params)?, GFP_KERNEL)?;
        let mut drivers = KVec::new();

        for index in 0..kernel::cpu::nr_cpu_ids() {
            let bios = *module_parameters::bios.value_ref();

            drivers.push(Driver::new(&shared, index, bios)?, GFP_KERNEL)?;
        }

        let hotplug = Arc::new(Hotplug::new(&shared), GFP_KERNEL)?;
        let monitor = Arc::new(Monitor::new(&shared, &drivers, hotplug)?, GFP_KERNEL)?;

        // From here on nothing fails, so no bio can be on its way when this returns an error.
        Ok(Self {
            shared,
            drivers,
            monitor: Some(Thread::spawn(c"bio_torture", monitor)?),
        })
    }
}

impl Drop for BioTorture {
    fn drop(&mut self) {
        let mut waited = 0u32;

        // Joins all threads: after that only callbacks and interrupts are left.
        self.monitor = None;

        // A bio that is lost keeps the module here for ever: whoever finds it would call what is
        // gone.
        while self.drivers.iter().any(|driver| driver.nr_out() > 0) {
            if waited % 100 == 99 {
                pr_err!("unload waits for bios that have not ended\n");
            }
            waited = waited.wrapping_add(1);
            fsleep(Delta::from_millis(100));
        }
        // Interrupts that finished the last bios may still be returning from it.
        self.drivers.iter().for_each(|driver| driver.sync());
        context::wait_for_callbacks();
        pr_info!("unloaded after {} bios\n", self.shared.stats.ended());
    }
}
