// SPDX-License-Identifier: GPL-2.0

//! Some bios that are finished together, in a context of choice.
//!
//! C headers: [`include/linux/interrupt.h`](srctree/include/linux/interrupt.h),
//! [`include/linux/smp.h`](srctree/include/linux/smp.h)

use super::{
    order::Lane,
    slot::{
        hard_irq_work,
        Item, //
    }, //
};
use core::ptr;
use kernel::{
    bindings,
    interrupt::local_interrupt_disable,
    new_spinlock,
    new_spinlock_irq,
    prelude::*,
    sync::{
        rcu,
        SpinLock,
        SpinLockIrq, //
    },
    types::Opaque, //
};

/// Where a burst is finished.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// An interrupt that another CPU sent to this one. In the handler, or in the idle loop.
    Call(u32),
    /// An interrupt that this CPU sent to itself.
    IrqWork,
    /// A softirq on that CPU.
    Softirq(u32),
    /// A task with interrupts off.
    InterruptsOff,
    /// A task that holds a spinlock.
    Locked,
    /// A task that reads under RCU.
    RcuReader,
    /// A task that may sleep.
    Task,
}

/// What one driver needs to get its bios into interrupts.
#[pin_data(PinnedDrop)]
pub(crate) struct Burst {
    #[pin]
    items: SpinLockIrq<KVec<Item>>,
    #[pin]
    irq_work: Opaque<bindings::irq_work>,
    #[pin]
    tasklet: Opaque<bindings::tasklet_struct>,
    #[pin]
    lock: SpinLock<()>,
}

// SAFETY: The items are protected by their lock, the others by their own flags.
unsafe impl Send for Burst {}

// SAFETY: As above.
unsafe impl Sync for Burst {}

impl Burst {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            items <- new_spinlock_irq!(KVec::new()),
            irq_work <- hard_irq_work(irq_work_fn),
            tasklet <- Opaque::ffi_init(|tasklet| {
                // SAFETY: `tasklet` is valid for writes.
                unsafe { bindings::tasklet_setup(tasklet, Some(tasklet_fn)) }
            }),
            lock <- new_spinlock!(()),
        })
    }

    /// Finishes `items`, and returns when that is done. One caller at a time.
    ///
    /// Context: task, may sleep.
    pub(crate) fn finish(&self, items: KVec<Item>, place: Place) {
        *self.items.lock() = items;
        match place {
            Place::Call(cpu) => {
                self.call(cpu, call_fn);
            }
            Place::IrqWork => {
                // SAFETY: Initialized in `new()`, and idle, since it was synced.
                unsafe { bindings::irq_work_queue(self.irq_work.get()) };
                self.sync_irq_work();
            }
            Place::Softirq(cpu) => {
                // Of a CPU that is offline this one takes over: its ksoftirqd may do it.
                if !self.call(cpu, schedule_fn) {
                    self.schedule_tasklet();
                }
                self.sync_tasklet();
            }
            Place::InterruptsOff => {
                let items = self.take();
                let _irqs_off = local_interrupt_disable();

                finish_all(items, Some(Lane::Interrupt));
            }
            Place::Locked => {
                let items = self.take();
                let _guard = self.lock.lock();

                finish_all(items, None);
            }
            Place::RcuReader => {
                let items = self.take();
                let _guard = rcu::read_lock();

                finish_all(items, None);
            }
            Place::Task => (),
        }

        // None, but for the last place, and a CPU that was offline.
        finish_all(self.take(), None);
    }

    /// Takes the items out, so that no lock is held when they are finished.
    fn take(&self) -> KVec<Item> {
        core::mem::take(&mut *self.items.lock())
    }

    /// Runs `func` on `cpu`, with interrupts off, and waits for it; [`false`] if it is offline.
    fn call(&self, cpu: u32, func: unsafe extern "C" fn(*mut c_void)) -> bool {
        // SAFETY: `self` outlives the call, since that is waited for.
        unsafe {
            bindings::smp_call_function_single(
                cpu as c_int,
                Some(func),
                ptr::from_ref(self).cast_mut().cast(),
                true,
            ) == 0
        }
    }

    fn schedule_tasklet(&self) {
        // SAFETY: Initialized in `new()`, and killed before it is freed.
        unsafe { bindings::tasklet_schedule(self.tasklet.get()) };
    }

    fn sync_irq_work(&self) {
        // SAFETY: Initialized in `new()`.
        unsafe { bindings::irq_work_sync(self.irq_work.get()) };
    }

    /// Waits until the tasklet has run; it may be scheduled again.
    fn sync_tasklet(&self) {
        // SAFETY: Initialized in `new()`, and the caller may sleep.
        unsafe { bindings::tasklet_kill(self.tasklet.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for Burst {
    fn drop(self: Pin<&mut Self>) {
        self.sync_irq_work();
        self.sync_tasklet();
    }
}

fn finish_all(mut items: KVec<Item>, lane: Option<Lane>) {
    for item in items.drain_all() {
        item.finish(lane);
    }
}

/// # Safety
///
/// Only called by [`Burst::call`], with a burst, and interrupts off.
unsafe extern "C" fn call_fn(burst: *mut c_void) {
    // SAFETY: As promised by the caller, who waits for this.
    let burst = unsafe { &*burst.cast::<Burst>() };

    finish_all(burst.take(), Some(Lane::Interrupt));
}

/// # Safety
///
/// Only called by [`Burst::call`], with a burst.
unsafe extern "C" fn schedule_fn(burst: *mut c_void) {
    // SAFETY: As promised by the caller, who waits for this.
    unsafe { &*burst.cast::<Burst>() }.schedule_tasklet();
}

/// # Safety
///
/// Only called for the irq_work of a burst, in a hard interrupt.
unsafe extern "C" fn irq_work_fn(work: *mut bindings::irq_work) {
    let work = Opaque::cast_from(work).cast_mut();
    // SAFETY: `work` is in a burst, which is freed after the irq_work is synced.
    let burst = unsafe { &*kernel::container_of!(work, Burst, irq_work) };

    finish_all(burst.take(), Some(Lane::Interrupt));
}

/// # Safety
///
/// Only called for the tasklet of a burst, in a softirq.
unsafe extern "C" fn tasklet_fn(tasklet: *mut bindings::tasklet_struct) {
    let tasklet = Opaque::cast_from(tasklet).cast_mut();
    // SAFETY: `tasklet` is in a burst, which is freed after the tasklet is killed.
    let burst = unsafe { &*kernel::container_of!(tasklet, Burst, tasklet) };

    finish_all(burst.take(), Some(Lane::Softirq));
}
