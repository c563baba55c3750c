// SPDX-License-Identifier: GPL-2.0

//! A thread that arms bios and has them finished, all at random.

use super::{
    burst::{
        Burst,
        Place, //
    },
    random::Random,
    shared::Shared,
    slot::{
        Item,
        Plan,
        Slot, //
    },
    thread::{
        Run,
        Stop, //
    }, //
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// How many bios one interrupt finishes, at most.
const BURST: u32 = 16;

/// How many bios are chained to one, at most.
const CHAIN: u32 = 3;

#[pin_data]
pub(crate) struct Driver {
    shared: Arc<Shared>,
    index: u32,
    /// Only this driver arms them.
    slots: KVec<Arc<Slot>>,
    #[pin]
    burst: Burst,
}

impl Driver {
    pub(crate) fn new(shared: &Arc<Shared>, index: u32, bios: u32) -> Result<Arc<Self>> {
        let shared = shared.clone();
        let mut slots = KVec::new();

        for _ in 0..bios.max(1) {
            slots.push(Slot::new(&shared)?, GFP_KERNEL)?;
        }
        Arc::pin_init(
            pin_init!(Self {
                shared,
                index,
                slots,
                burst <- Burst::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// How many bios have not ended.
    pub(crate) fn nr_out(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_out()).count()
    }

    /// Counts bios that have been out for `stall` nanoseconds.
    pub(crate) fn check_lost(&self, stall: i64) {
        self.slots.iter().for_each(|slot| slot.check_lost(stall));
    }

    /// Waits for interrupts that finish bios again. The thread has ended.
    pub(crate) fn sync(&self) {
        self.slots.iter().for_each(|slot| slot.sync());
    }

    /// Arms some slots and adds their bios to `waiting`, which has room for all of them.
    fn arm(&self, waiting: &mut KVec<Item>, random: &mut Random) {
        let mut left = 1 + random.below(BURST);

        for slot in self.slots.iter() {
            let plan = match random.below(16) {
                0 => Plan::Sleep,
                1 | 2 => Plan::Interrupt,
                3 => Plan::Again,
                _ => Plan::End,
            };
            let device = random.below(self.shared.params.devices);
            let Some(item) = slot.arm(plan, device) else {
                continue;
            };

            if random.once_in(8) {
                for _ in 0..=random.below(CHAIN) {
                    if let Some(chained) = item.chain_new() {
                        add(waiting, chained);
                    }
                }
            }
            add(waiting, item);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }

    /// Has some of `waiting` finished; the bios of a chain go different ways.
    fn finish(&self, waiting: &mut KVec<Item>, random: &mut Random) -> Result {
        let nr = 1 + random.below(BURST);
        let cpu = random.below(nr_cpu_ids());
        let mut items = KVec::with_capacity(nr as usize, GFP_KERNEL)?;

        for _ in 0..nr {
            // Fails when there are no more.
            let Ok(item) = waiting.remove(random.below(waiting.len() as u32) as usize) else {
                break;
            };

            add(&mut items, item);
        }

        let place = match random.below(12) {
            0..4 => Place::Call(cpu),
            4 | 5 => Place::IrqWork,
            6 | 7 => Place::Softirq(cpu),
            8 => Place::InterruptsOff,
            9 => Place::Locked,
            10 => Place::RcuReader,
            _ => Place::Task,
        };

        self.burst.finish(&mut items, place);
        Ok(())
    }
}

impl Run for Driver {
    fn run(&self, stop: &Stop) {
        let mut random = Random::new(self.shared.params.seed, self.index);
        let room = self.slots.len().saturating_mul(1 + CHAIN as usize);
        // Without memory there is no room, and all is finished where it is armed.
        let mut waiting = KVec::with_capacity(room, GFP_KERNEL).unwrap_or_default();

        while !stop.requested() {
            self.arm(&mut waiting, &mut random);
            if waiting.is_empty() || self.finish(&mut waiting, &mut random).is_err() {
                fsleep(Delta::from_micros(200));
            } else if random.once_in(4) {
                fsleep(Delta::from_micros(i64::from(20 + random.below(500))));
            }
        }
        for item in waiting.drain_all() {
            item.finish(None);
        }
    }
}

/// Adds `item` to `items`. Without room it is finished here: one that is dropped would be lost.
fn add(items: &mut KVec<Item>, item: Item) {
    if let Err(full) = items.push_within_capacity(item) {
        full.0.finish(None);
    }
}
