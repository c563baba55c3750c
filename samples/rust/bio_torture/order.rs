// SPDX-License-Identifier: GPL-2.0

//! In which order bios of one CPU and device are finished, and in which they end.

use kernel::{
    cpu::{
        nr_cpu_ids,
        CpuId, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// A context that does not interrupt itself: nothing of the same lane and CPU gets between the
/// taking of a [`Stamp`] and the `bio_endio()` after it.
#[derive(Clone, Copy)]
pub(crate) enum Lane {
    /// Interrupts are disabled.
    Interrupt,
    /// A softirq.
    Softirq,
}

/// How many lanes there are.
const LANES: u32 = 2;

/// When a bio was finished: the `nr`th of its queue. `nr` 0 is none.
///
/// `nr` << 16 | index of the queue, so that it fits into an atomic.
#[derive(Clone, Copy)]
pub(crate) struct Stamp(pub(crate) i64);

impl Stamp {
    /// Of bios whose order nobody promises.
    pub(crate) const NONE: Stamp = Stamp(0);
}

/// What is known of one CPU, lane and device.
struct Queue {
    finished: Atomic<i64>,
    ended: Atomic<i64>,
}

/// All CPUs, lanes and devices.
///
/// # Invariants
///
/// There are at most as many queues as a [`Stamp`] can name; bios of others have no order.
pub(crate) struct Order {
    queues: KVec<Queue>,
    devices: u32,
}

impl Order {
    pub(crate) fn new(devices: u32) -> Result<Self> {
        let mut queues = KVec::new();

        for _ in 0..nr_cpu_ids()
            .saturating_mul(LANES)
            .saturating_mul(devices)
            .min(1 << 16)
        {
            let queue = Queue {
                finished: Atomic::new(0),
                ended: Atomic::new(0),
            };

            queues.push(queue, GFP_KERNEL)?;
        }
        // INVARIANT: Limited above.
        Ok(Self { queues, devices })
    }

    /// Stamps a bio of `device` that is about to be finished on this CPU.
    ///
    /// Context: that of `lane`.
    pub(crate) fn stamp(&self, lane: Lane, device: u32) -> Stamp {
        let index = CpuId::current()
            .as_u32()
            .wrapping_mul(LANES)
            .wrapping_add(lane as u32)
            .wrapping_mul(self.devices)
            .wrapping_add(device) as usize;

        self.queues.get(index).map_or(Stamp::NONE, |queue| {
            let nr = queue.finished.fetch_add(1, Relaxed).wrapping_add(1);

            Stamp((nr << 16) | index as i64)
        })
    }

    /// Whether a bio with `stamp`, which ends now, was finished after all that have ended before.
    pub(crate) fn holds(&self, stamp: Stamp) -> bool {
        let (nr, index) = (stamp.0 >> 16, (stamp.0 & 0xffff) as usize);

        // Not only read: two callbacks at a time are out of order as well.
        nr == 0
            || self
                .queues
                .get(index)
                .is_none_or(|queue| queue.ended.xchg(nr, Relaxed) < nr)
    }
}
