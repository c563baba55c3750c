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
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        rcu,
        SpinLock, //
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
///
/// # Invariants
///
/// `items` is null, or what [`Burst::finish`] was called with, which waits. Who takes it out has it
/// for itself.
#[pin_data(PinnedDrop)]
pub(crate) struct Burst {
    /// No lock: hard interrupts may not take one that sleeps on `PREEMPT_RT`, nor free memory.
    items: Atomic<*mut KVec<Item>>,
    #[pin]
    irq_work: Opaque<bindings::irq_work>,
    #[pin]
    tasklet: Opaque<bindings::tasklet_struct>,
    #[pin]
    lock: SpinLock<()>,
}

// SAFETY: The items are taken by one only, the others are protected by their own flags.
unsafe impl Send for Burst {}

// SAFETY: As above.
unsafe impl Sync for Burst {}

impl Burst {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            items: Atomic::new(ptr::null_mut()),
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
    pub(crate) fn finish(&self, items: &mut KVec<Item>, place: Place) {
        match place {
            Place::Call(cpu) => {
                self.give(items);
                self.call(cpu, call_fn);
                self.take_back();
            }
            Place::IrqWork => {
                self.give(items);
                // SAFETY: Initialized in `new()`, and idle, since it was synced.
                unsafe { bindings::irq_work_queue(self.irq_work.get()) };
                self.sync_irq_work();
                self.take_back();
            }
            Place::Softirq(cpu) => {
                self.give(items);
                // Of a CPU that is offline this one takes over: its ksoftirqd may do it.
                if !self.call(cpu, schedule_fn) {
                    self.schedule_tasklet();
                }
                self.sync_tasklet();
                self.take_back();
            }
            Place::InterruptsOff => {
                let _irqs_off = local_interrupt_disable();

                finish_all(items, Some(Lane::Interrupt));
            }
            Place::Locked => {
                let _guard = self.lock.lock();

                finish_all(items, None);
            }
            Place::RcuReader => {
                let _guard = rcu::read_lock();

                finish_all(items, None);
            }
            Place::Task => (),
        }

        // None are left, but for the last place, and a CPU that was offline.
        finish_all(items, None);
    }

    /// Offers `items` to an interrupt, until [`Burst::take_back`].
    fn give(&self, items: &mut KVec<Item>) {
        // INVARIANT: Only called by `finish()`, which does not touch them before it takes them
        // back.
        self.items.store(items, Release);
    }

    /// Ends what [`Burst::give`] began. No interrupt that may take the items is on its way.
    fn take_back(&self) {
        self.items.xchg(ptr::null_mut(), Acquire);
    }

    /// Finishes the items, in an interrupt.
    fn finish_given(&self, lane: Lane) {
        let items = self.items.xchg(ptr::null_mut(), Acquire);

        // SAFETY: By the type invariants it is valid, unless null, and nobody else has it.
        if let Some(items) = unsafe { items.as_mut() } {
            finish_all(items, Some(lane));
        }
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

/// Empties `items`, without freeing their memory.
fn finish_all(items: &mut KVec<Item>, lane: Option<Lane>) {
    for item in items.drain_all() {
        item.finish(lane);
    }
}

/// # Safety
///
/// Only called by [`Burst::call`], with a burst, and interrupts off.
unsafe extern "C" fn call_fn(burst: *mut c_void) {
    // SAFETY: As promised by the caller, who waits for this.
    unsafe { &*burst.cast::<Burst>() }.finish_given(Lane::Interrupt);
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
    unsafe { &*kernel::container_of!(work, Burst, irq_work) }.finish_given(Lane::Interrupt);
}

/// # Safety
///
/// Only called for the tasklet of a burst, in a softirq.
unsafe extern "C" fn tasklet_fn(tasklet: *mut bindings::tasklet_struct) {
    let tasklet = Opaque::cast_from(tasklet).cast_mut();
    // SAFETY: `tasklet` is in a burst, which is freed after the tasklet is killed.
    unsafe { &*kernel::container_of!(tasklet, Burst, tasklet) }.finish_given(Lane::Softirq);
}
