// SPDX-License-Identifier: GPL-2.0

//! A bio of our own, and its callback, which is where most is checked.
//!
//! C headers: [`include/linux/bio.h`](srctree/include/linux/bio.h),
//! [`include/linux/irq_work.h`](srctree/include/linux/irq_work.h)

use super::{
    context::Context,
    order::{
        Lane,
        Stamp, //
    },
    shared::Shared, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    bindings,
    interrupt::local_interrupt_disable,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

/// Who may touch a slot's bio.
///
/// ```text
///            arm(), by the driver          callback                done
///   FREE ------------------------> OUT -----------------> ENDING --------> FREE
///                                   ^                        |
///                                   +---- finished again ----+
/// ```
mod state {
    /// The driver.
    pub(super) const FREE: u32 = 0;
    /// Who finishes it, then the engine under test.
    pub(super) const OUT: u32 = 1;
    /// Its callback.
    pub(super) const ENDING: u32 = 2;
}

/// What a callback does after its checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    End,
    Sleep,
    /// Lets an interrupt finish the bio again.
    Interrupt,
    /// Finishes the bio again itself, with interrupts off: into the batch it may come from.
    Again,
}

impl Plan {
    fn from_number(number: u32) -> Self {
        match number {
            1 => Plan::Sleep,
            2 => Plan::Interrupt,
            3 => Plan::Again,
            _ => Plan::End,
        }
    }
}

/// A bio that is used again and again.
///
/// # Invariants
///
/// - `bio` is only touched by whom `state` says.
/// - Unless `state` is FREE, `bio` is initialized and has [`end_io`] as its callback.
#[pin_data(PinnedDrop)]
pub(crate) struct Slot {
    #[pin]
    bio: Opaque<bindings::bio>,
    #[pin]
    irq_work: Opaque<bindings::irq_work>,
    state: Atomic<u32>,
    /// A [`Plan`], the number of the bio's device, and whether others are chained to it.
    plan: Atomic<u32>,
    device: Atomic<u32>,
    chained: Atomic<bool>,
    /// When it was armed or last finished, in nanoseconds.
    finished_at: Atomic<i64>,
    /// A [`Stamp`].
    stamp: Atomic<i64>,
    /// The monitor has counted it.
    lost: Atomic<bool>,
    shared: Arc<Shared>,
}

// SAFETY: The bio is protected by `state`, the irq_work by its own flags, the rest is atomic.
unsafe impl Send for Slot {}

// SAFETY: As above.
unsafe impl Sync for Slot {}

impl Slot {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        let shared = shared.clone();

        Arc::pin_init(
            pin_init!(Self {
                bio <- Opaque::zeroed(),
                irq_work <- hard_irq_work(finish_again),
                state: Atomic::new(state::FREE),
                plan: Atomic::new(0),
                device: Atomic::new(0),
                chained: Atomic::new(false),
                finished_at: Atomic::new(0),
                stamp: Atomic::new(0),
                lost: Atomic::new(false),
                shared,
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Acquire) != state::FREE
    }

    /// Takes a free slot and makes its bio ready to be finished, which the caller has to do.
    ///
    /// Nobody but the slot's driver may call this.
    pub(crate) fn arm(self: &Arc<Self>, plan: Plan, device: u32) -> Option<Item> {
        if self.is_out() {
            return None;
        }

        // INVARIANT: The slot is free, and only its driver takes it: the bio is ours.
        self.device.store(device, Relaxed);
        self.init_bio(plan);
        self.chained.store(false, Relaxed);
        self.finished_at.store(self.shared.now(), Relaxed);
        self.state.store(state::OUT, Release);

        // INVARIANT: Armed, and not finished yet.
        Some(Item {
            slot: self.clone(),
            bio: NonNull::new(self.bio.get())?,
        })
    }

    /// Prepares the bio, which the caller owns.
    fn init_bio(&self, plan: Plan) {
        let bio = self.bio.get();
        let device = self.shared.device(self.device.load(Relaxed));

        self.plan.store(plan as u32, Relaxed);
        // SAFETY: The caller owns the bio, and it has neither pages nor integrity data nor a
        // cgroup, so nothing leaks if it was used before. bio_init() would look into a device.
        unsafe {
            bindings::bio_init(
                bio,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
                bindings::req_op_REQ_OP_WRITE,
            );
            (*bio).bi_flags |= 1 << bindings::BIO_COMPLETE_IN_TASK;
            (*bio).bi_bdev = device;
            (*bio).bi_end_io = Some(end_io);
        }
    }

    /// Calls `bio_endio()` for the slot's bio or one that is chained to it.
    ///
    /// `lane` is where it runs, if the order of what is finished there is to be checked.
    ///
    /// # Safety
    ///
    /// `bio` is the slot's, or chained to it, and the caller owns it and does not touch it again.
    /// The slot is [`state::OUT`].
    unsafe fn finish(&self, bio: NonNull<bindings::bio>, lane: Option<Lane>) {
        let context = Context::current();
        let alone = bio.as_ptr() == self.bio.get() && !self.chained.load(Relaxed);
        let plan = Plan::from_number(self.plan.load(Relaxed));

        // Others of the chain may end while this looks at the slot, but not before bio_endio().
        if alone {
            let device = self.device.load(Relaxed);
            let stamp = lane.map_or(Stamp::NONE, |lane| self.shared.order.stamp(lane, device));

            self.stamp.store(stamp.0, Relaxed);
        }
        self.finished_at.store(self.shared.now(), Relaxed);
        self.shared.stats.finished(context).inc();

        // SAFETY: The bio is initialized, by the type invariants, and given away by the caller.
        unsafe { bindings::bio_endio(bio.as_ptr()) };

        // Only the driver arms a slot, and where it may sleep this is the driver (or its callback,
        // which never finishes a bio there): a slot that was free again still is.
        if cfg!(CONFIG_PREEMPT_COUNT)
            && context == Context::Task
            && alone
            && matches!(plan, Plan::End | Plan::Sleep)
            && self.is_out()
        {
            self.shared.stats.deferred.inc();
        }
    }

    /// The checks of a callback, and what it does then.
    fn ended(&self) {
        let stats = &self.shared.stats;
        let may_sleep = Context::current() == Context::Task;

        if !may_sleep {
            stats.in_atomic.inc();
        }
        if self
            .state
            .cmpxchg(state::OUT, state::ENDING, Acquire)
            .is_err()
        {
            stats.twice.inc();
            return;
        }

        let bio = self.bio.get();
        let waited = self
            .shared
            .now()
            .wrapping_sub(self.finished_at.load(Relaxed));

        stats.ended.inc();
        stats.latency.note(waited);
        if !self.shared.order.holds(Stamp(self.stamp.load(Relaxed))) {
            stats.disordered.inc();
        }
        // SAFETY: The callback owns the bio.
        let (linked, status) = unsafe { (!(*bio).bi_next.is_null(), (*bio).bi_status) };

        if linked {
            stats.linked.inc();
        }
        if status != 0 {
            stats.status.inc();
        }
        if self.chained.xchg(false, Relaxed) {
            stats.chained.inc();
        }

        match Plan::from_number(self.plan.load(Relaxed)) {
            Plan::Interrupt => self.again(|| {
                // SAFETY: Initialized in `new()`, and synced before the slot is freed.
                unsafe { bindings::irq_work_queue(self.irq_work.get()) };
            }),
            Plan::Again => self.again(|| {
                let _irqs_off = local_interrupt_disable();

                self.finish_again();
            }),
            Plan::Sleep if may_sleep => {
                fsleep(Delta::from_millis(1));
                stats.slept.inc();
                self.state.store(state::FREE, Release);
            }
            Plan::End | Plan::Sleep => self.state.store(state::FREE, Release),
        }
    }

    /// Arms the bio again, for `finish`. The slot is not the caller's afterwards.
    fn again(&self, finish: impl FnOnce()) {
        // INVARIANT: The callback owns the bio until it is out again.
        self.init_bio(Plan::End);
        self.shared.stats.resubmitted.inc();
        self.finished_at.store(self.shared.now(), Relaxed);
        self.state.store(state::OUT, Release);
        finish();
    }

    /// Finishes the bio after [`Slot::again`]. Interrupts are off.
    fn finish_again(&self) {
        if let Some(bio) = NonNull::new(self.bio.get()) {
            // SAFETY: `again()` armed the bio for its one call of this.
            unsafe { self.finish(bio, Some(Lane::Interrupt)) };
        }
    }

    /// Counts the bio if it has been out for `stall` nanoseconds, once.
    pub(crate) fn check_lost(&self, stall: i64) {
        if self.is_out()
            && self
                .shared
                .now()
                .wrapping_sub(self.finished_at.load(Relaxed))
                > stall
            && self.is_out()
            && !self.lost.xchg(true, Relaxed)
        {
            self.shared.stats.lost.inc();
        }
    }

    /// Waits for the interrupt that finished the bio again, if there is one.
    ///
    /// Context: task, may sleep.
    pub(crate) fn sync(&self) {
        // SAFETY: Initialized in `new()`.
        unsafe { bindings::irq_work_sync(self.irq_work.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for Slot {
    fn drop(self: Pin<&mut Self>) {
        self.sync();
    }
}

/// A bio that is to be finished: that of a slot, or one chained to it.
///
/// # Invariants
///
/// `bio` is `slot`'s or chained to it, is armed, and nobody else finishes it. `slot` is out.
pub(crate) struct Item {
    slot: Arc<Slot>,
    bio: NonNull<bindings::bio>,
}

// SAFETY: The bio is finished by whoever has the item, in any context.
unsafe impl Send for Item {}

impl Item {
    /// Chains a new bio to this one, which then ends when both are finished; [`None`] without
    /// memory.
    ///
    /// Context: task, may sleep.
    pub(crate) fn chain_new(&self) -> Option<Item> {
        // SAFETY: The set is there from boot on. Without pages a bio needs no device either.
        let bio = NonNull::new(unsafe {
            bindings::bio_alloc_bioset(
                ptr::null_mut(),
                0,
                bindings::req_op_REQ_OP_WRITE,
                bindings::GFP_KERNEL,
                &raw mut bindings::fs_bio_set,
            )
        })?;

        // SAFETY: The new bio is ours and has no callback, and ours is not finished yet, by the
        // type invariants. bio_endio() puts the reference to the new one.
        unsafe { bindings::bio_chain(bio.as_ptr(), self.bio.as_ptr()) };
        self.slot.chained.store(true, Relaxed);
        self.slot.stamp.store(Stamp::NONE.0, Relaxed);

        // INVARIANT: Just chained.
        Some(Item {
            slot: self.slot.clone(),
            bio,
        })
    }

    /// Finishes the bio here; see [`Slot::finish`] for `lane`.
    pub(crate) fn finish(self, lane: Option<Lane>) {
        // SAFETY: By the type invariants, and the item is gone afterwards.
        unsafe { self.slot.finish(self.bio, lane) };
    }
}

/// Initializes an irq_work that runs `func` in hard interrupts, on any kernel.
pub(crate) fn hard_irq_work(
    func: unsafe extern "C" fn(*mut bindings::irq_work),
) -> impl PinInit<Opaque<bindings::irq_work>> {
    Opaque::ffi_init(move |work: *mut bindings::irq_work| {
        // SAFETY: `work` is valid for writes. As init_irq_work(): all zero but these.
        unsafe {
            ptr::write_bytes(work, 0, 1);
            (*work).node.__bindgen_anon_1.u_flags = bindings::IRQ_WORK_HARD_IRQ;
            (*work).func = Some(func);
        }
    })
}

/// The `bi_end_io` of every slot.
///
/// # Safety
///
/// Only called with the bio of a slot that has not been freed.
unsafe extern "C" fn end_io(bio: *mut bindings::bio) {
    let bio = Opaque::cast_from(bio).cast_mut();

    // SAFETY: `bio` is in a slot, and slots are freed when none is out.
    unsafe { &*kernel::container_of!(bio, Slot, bio) }.ended();
}

/// The function of the irq_work of every slot.
///
/// # Safety
///
/// Only called for the irq_work of a slot whose callback has queued it.
unsafe extern "C" fn finish_again(work: *mut bindings::irq_work) {
    let work = Opaque::cast_from(work).cast_mut();

    // SAFETY: `work` is in a slot, which is freed after the irq_work is synced.
    unsafe { &*kernel::container_of!(work, Slot, irq_work) }.finish_again();
}
