// SPDX-License-Identifier: GPL-2.0

//! What all threads and callbacks share.

use super::{
    order::Order,
    stats::Stats, //
};
use core::ptr;
use kernel::{
    bindings,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
    types::Opaque, //
};

/// More are taken for that many.
const MAX_DEVICES: u32 = 64;

/// The parameters of the module.
pub(crate) struct Params {
    pub(crate) seconds: u32,
    pub(crate) seed: u64,
    pub(crate) hotplug: bool,
    pub(crate) order: bool,
    pub(crate) stall: u32,
    /// 1 to [`MAX_DEVICES`].
    pub(crate) devices: u32,
}

/// What bios can have as a device.
///
/// Only its address matters: nobody looks into the device of a bio that was not submitted, and so
/// has no flags that tell to. It is zeroed, so that who does finds null pointers.
struct Device(Opaque<bindings::block_device>);

// SAFETY: Nobody accesses what is in it.
unsafe impl Send for Device {}

// SAFETY: As above.
unsafe impl Sync for Device {}

/// One run.
pub(crate) struct Shared {
    pub(crate) params: Params,
    pub(crate) stats: Stats,
    pub(crate) order: Order,
    devices: KVec<KBox<Device>>,
    start: Instant<Monotonic>,
}

impl Shared {
    pub(crate) fn new(mut params: Params) -> Result<Self> {
        let mut devices = KVec::new();

        params.devices = params.devices.clamp(1, MAX_DEVICES);
        for _ in 1..params.devices {
            devices.push(KBox::new(Device(Opaque::zeroed()), GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Self {
            stats: Stats::new(),
            order: Order::new(params.devices)?,
            params,
            devices,
            start: Instant::now(),
        })
    }

    /// The address of a device; null for number 0, and for what is none.
    pub(crate) fn device(&self, number: u32) -> *mut bindings::block_device {
        (number as usize)
            .checked_sub(1)
            .and_then(|index| self.devices.get(index))
            .map_or(ptr::null_mut(), |device| device.0.get())
    }

    /// Nanoseconds since the start. Context: any.
    pub(crate) fn now(&self) -> i64 {
        self.start.elapsed().as_nanos()
    }
}
