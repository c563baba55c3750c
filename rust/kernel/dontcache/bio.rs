// SPDX-License-Identifier: GPL-2.0

//! Bios that are finished in atomic context and are to be completed by a worker.
//!
//! C headers: [`include/linux/bio.h`](srctree/include/linux/bio.h),
//! [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)

use super::{
    backlog::{
        Backlog,
        BUDGET, //
    },
    batch::{
        self,
        Queue, //
    },
    folio::Drops,
    pace::{
        Pace,
        Rest, //
    },
    trace,
};
use crate::{
    bindings,
    cpu::nr_cpu_ids,
    error::{
        from_err_ptr,
        to_result, //
    },
    jump_label::static_branch_unlikely,
    prelude::*,
    sync::atomic::{
        Atomic,
        Full, //
    },
    types::Opaque,
    workqueue, //
};
use core::ptr::{
    self,
    NonNull, //
};

/// The batch of one CPU. C owns the per-CPU variable, this type what is in it.
///
/// # Invariants
///
/// - `newest` and `oldest` are null or the ends of a chain through `bi_next`, which may lack links
///   that are about to be set. They are only accessed atomically, as are `task`, `state` and `room`.
/// - Every bio of the chain is finished, has a `bi_end_io`, and belongs to the batch.
/// - `work` and `cpu` do not change after [`Batch::init`]. `task` is null, or the batch's worker,
///   a thread that never ends.
#[repr(transparent)]
pub struct Batch(Opaque<bindings::bio_task_batch>);

impl Batch {
    /// Makes a batch of what C allocated.
    ///
    /// # Safety
    ///
    /// `ptr` is a `struct bio_task_batch` that lives for `'a`. From the call of [`Batch::init`] on
    /// nobody but this type writes to it, but for `state`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bio_task_batch) -> &'a Self {
        // CAST: `Self` is transparent over `struct bio_task_batch`.
        // SAFETY: `ptr` is valid for `'a` by the safety requirement.
        unsafe { &*ptr.cast() }
    }

    /// The batch of a possible CPU.
    fn of(cpu: u32) -> &'static Self {
        // SAFETY: Per-CPU variables live as long as the kernel.
        unsafe { Self::from_raw(bindings::bio_task_batch_of(cpu)) }
    }

    /// Prepares the batch of `cpu`.
    ///
    /// # Safety
    ///
    /// The batch is zeroed, this is its first use, and it is never freed.
    unsafe fn init(&self, cpu: u32) {
        let this = self.0.get();

        // INVARIANT: Zeroed, the chain is empty.
        // SAFETY: This is the first use, so nobody else accesses the fields. The lock class is
        // static, and the work item is never freed.
        unsafe {
            (*this).cpu = cpu as c_int;
            bindings::init_work_with_key(
                &raw mut (*this).work,
                Some(Self::work_fn),
                false,
                c"bio_task_batch::work".as_char_ptr(),
                crate::static_lock_class!().as_ptr(),
            );
        }
    }

    /// Makes the worker, which stays when its CPU goes away: it runs elsewhere then.
    ///
    /// Context: task, may sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and what `kthread_create()` says.
    fn make_worker(&self) -> Result {
        let this = self.0.get();

        if !self.task().is_null() {
            return Ok(());
        }

        // SAFETY: The worker gets its own batch, which lives as long as the kernel. `cpu` does not
        // change, and the format is one of an int.
        let task = from_err_ptr(unsafe {
            bindings::kthread_create_on_node(
                Some(bindings::bio_task_worker),
                this.cast(),
                bindings::dontcache_cpu_to_node((*this).cpu),
                c"bio_task/%d".as_char_ptr(),
                (*this).cpu,
            )
        })?;

        // A preference, other than a binding, survives the CPU's absence.
        //
        // SAFETY: The thread has not been woken yet.
        let ret = unsafe {
            bindings::kthread_affine_preferred(task, bindings::dontcache_cpumask_of((*this).cpu))
        };
        to_result(ret).inspect_err(|_| {
            // SAFETY: The thread has not run, so it stops without having called its function.
            unsafe { bindings::kthread_stop(task) };
        })?;

        // Before the worker runs: once it gathers it is woken by who finds it here.
        //
        // INVARIANT: It is this batch's worker, and never ends.
        // SAFETY: The field is valid, and nobody else writes to it.
        unsafe { write_once(&raw mut (*this).task, task) };
        // SAFETY: The thread is valid.
        unsafe { bindings::wake_up_process(task) };
        Ok(())
    }

    /// Takes over `bio`; the worker calls its `bi_end_io` later, in task context.
    ///
    /// Context: any but NMI, with preemption disabled, so that no preempted producer can hold up
    /// others by not waking the worker. Does not sleep or allocate.
    ///
    /// # Safety
    ///
    /// `bio` is finished, has a `bi_end_io`, and is not accessed by the caller afterwards.
    /// [`Batch::init`] has been called.
    #[inline]
    pub unsafe fn enqueue(&self, bio: NonNull<bindings::bio>) {
        // SAFETY: The caller owns the bio.
        unsafe { trace::bio_task_defer(bio.as_ptr()) };
        if timing() {
            // SAFETY: The caller owns the bio.
            unsafe { stamp(bio) };
        }

        let this = self.0.get();

        // INVARIANT: `bio` is finished and given to us by the safety requirement.
        if batch::push(&Bios(self), bio) {
            // SAFETY: Only this CPU writes to `room`, and its preemption is disabled.
            unsafe { write_once(&raw mut (*this).room, BUDGET as u32) };
            if self.state() == IDLE {
                self.wake();
            }
        } else {
            // An interrupt in between makes the number wrong; a worker that is not woken for that
            // wakes of itself.
            let room = self.room().wrapping_sub(1);

            // SAFETY: As above.
            unsafe { write_once(&raw mut (*this).room, room) };
            if room == 0 {
                self.wake();
            }
        }
    }

    #[inline]
    fn wake(&self) {
        let task = self.task();

        if task.is_null() {
            self.queue_work();
        } else {
            // SAFETY: The worker never ends, by the type invariants.
            unsafe { bindings::wake_up_process(task) };
        }
    }

    #[cold]
    fn queue_work(&self) {
        let wq = NonNull::from(workqueue::system()).cast().as_ptr();

        // SAFETY: `cpu` and `work` do not change after `init()`, by the type invariants. The
        // system's workqueue lives as long as the kernel.
        unsafe {
            bindings::queue_work_on((*self.0.get()).cpu, wq, &raw mut (*self.0.get()).work);
        }
    }

    /// Completes up to a budget of what waits; returns how many.
    fn run(&self, backlog: &mut Backlog<NonNull<bindings::bio>>) -> usize {
        let this = self.0.get();
        let mut waited = 0;
        let nr = if timing() {
            self.run_timed(backlog, &mut waited)
        } else {
            // SAFETY: By the type invariants the bio is ours.
            backlog.run(&Bios(self), BUDGET, |bio| unsafe { complete(bio) })
        };

        if nr > 0 {
            // SAFETY: Only the worker writes to the counters, and readers bear old values.
            unsafe {
                count(&raw mut (*this).nr_runs, 1);
                count(&raw mut (*this).nr_bios, nr as i64);
                trace::bio_task_run((*this).cpu, nr as c_ulong, waited);
            }
        }
        nr
    }

    /// The same as [`Batch::run`], with a look at how long bios have waited, and the longest time.
    #[cold]
    fn run_timed(
        &self,
        backlog: &mut Backlog<NonNull<bindings::bio>>,
        waited: &mut c_ulong,
    ) -> usize {
        backlog.run(&Bios(self), BUDGET, |bio| {
            // SAFETY: By the type invariants the bio is ours until it is completed. Only the worker
            // writes to the times.
            unsafe {
                *waited = (*waited).max(count_time(bio, &mut (*self.0.get()).times));
                complete(bio);
            }
        })
    }

    /// The worker's life.
    ///
    /// # Safety
    ///
    /// Only called once, by the worker.
    pub unsafe fn work(&self) -> ! {
        let this = self.0.get();
        let mut backlog = Backlog::new();
        let mut drops = Drops::new();
        // Callbacks reach it through the batch, so nothing here may hold a reference to it.
        let drops = &raw mut drops;
        let mut pace = Pace::new(bindings::HZ as usize, jiffies());
        let mut gathers = false;
        let mut hurried = false;

        // SAFETY: This function does not return, so its variables live as long as the worker, and
        // only the worker uses the field.
        unsafe { (*this).drops = drops.cast() };

        loop {
            let mut nr = self.run(&mut backlog);

            while !backlog.is_empty() {
                // SAFETY: The worker holds no locks.
                unsafe { bindings::dontcache_cond_resched() };
                nr = nr.wrapping_add(self.run(&mut backlog));
            }
            if nr > 0 {
                // SAFETY: It lives, and no callback runs.
                unsafe { (*drops).flush() };
            }
            match pace.after_run(nr, jiffies(), hurried) {
                Rest::Gather(time) if self.may_gather(&mut pace) => {
                    gathers = true;
                    hurried = self.gather(time);
                }
                _ => {
                    if gathers {
                        // SAFETY: This is the batch. What came before is looked for next.
                        unsafe { bindings::bio_task_no_gather(this) };
                        gathers = false;
                    }
                    hurried = false;
                    self.idle();
                }
            }
        }
    }

    /// Sleeps until a bio comes, unless there is one.
    fn idle(&self) {
        // SAFETY: This is the current task's own state. The full barrier pairs with that of
        // `push()`: either we see the new bio, or the producer sees `IDLE` and wakes us.
        unsafe { bindings::dontcache_set_task_idle() };
        if self.newest().is_null() {
            // SAFETY: The worker holds no locks.
            unsafe { bindings::schedule() };
        }
        // SAFETY: As above.
        unsafe { bindings::dontcache_set_task_running() };
    }

    /// Whether bios that come from now on may wait for others: not if somebody waits for them.
    fn may_gather(&self, pace: &mut Pace) -> bool {
        // SAFETY: This is the batch, and this its worker.
        if self.state() == GATHER || unsafe { bindings::bio_task_gather(self.0.get()) } {
            return true;
        }
        pace.hurry(jiffies());
        false
    }

    /// Sleeps for `time` jiffies; returns whether that was cut short by somebody who waits.
    fn gather(&self, time: usize) -> bool {
        let this = self.0.get();

        // SAFETY: This is the current task's own state. The full barrier pairs with that of
        // `wake_up_process()`: either we see that the state was reset or the batch is full, or are
        // woken.
        unsafe { bindings::dontcache_set_task_idle() };
        if self.state() == GATHER && !self.is_full() {
            // SAFETY: The worker holds no locks.
            unsafe { bindings::schedule_timeout(time as c_long) };
        }
        // SAFETY: As above.
        unsafe { bindings::dontcache_set_task_running() };

        let hurried = self.state() != GATHER;

        // SAFETY: Only the worker writes to the counters, and readers bear old values.
        unsafe {
            count(&raw mut (*this).nr_gathered, 1);
            count(&raw mut (*this).nr_hurried, hurried.into());
        }
        hurried
    }

    /// The `work_func_t` of every batch, for when there is no worker.
    ///
    /// # Safety
    ///
    /// Only called by a workqueue, with the work item of a batch.
    unsafe extern "C" fn work_fn(work: *mut bindings::work_struct) {
        // SAFETY: `work` is the work item of a batch.
        let batch = unsafe { crate::container_of!(work, bindings::bio_task_batch, work) };
        // SAFETY: Batches are never freed, and this one was prepared when its work was queued.
        let batch = unsafe { Self::from_raw(batch) };
        let mut backlog = Backlog::new();

        while batch.run(&mut backlog) > 0 {
            // SAFETY: No locks are held.
            unsafe { bindings::dontcache_cond_resched() };
        }
    }

    #[inline]
    fn newest(&self) -> *mut bindings::bio {
        // SAFETY: `newest` is valid as long as `self`.
        unsafe { read_once(&raw const (*self.0.get()).newest) }
    }

    /// Whether a budget of bios has come. What `room` says of an empty batch is old.
    #[inline]
    fn is_full(&self) -> bool {
        !self.newest().is_null() && self.room().wrapping_sub(1) >= BUDGET as u32
    }

    #[inline]
    fn room(&self) -> u32 {
        // SAFETY: `room` is valid as long as `self`.
        unsafe { read_once(&raw const (*self.0.get()).room) }
    }

    #[inline]
    fn task(&self) -> *mut bindings::task_struct {
        // SAFETY: `task` is valid as long as `self`.
        unsafe { read_once(&raw const (*self.0.get()).task) }
    }

    #[inline]
    fn state(&self) -> i32 {
        // SAFETY: `state` is valid as long as `self`.
        unsafe { read_once(&raw const (*self.0.get()).state) }
    }
}

/// `READ_ONCE()`. A relaxed load of [`Atomic`] is a call where helpers are not inlined, too much on
/// a path of twenty instructions.
///
/// # Safety
///
/// `ptr` is valid and aligned, for a word that is only accessed atomically.
#[inline(always)]
unsafe fn read_once<T: Copy>(ptr: *const T) -> T {
    // SAFETY: As promised by the caller.
    unsafe { ptr.read_volatile() }
}

/// `WRITE_ONCE()`, see [`read_once`].
///
/// # Safety
///
/// As for [`read_once`].
#[inline(always)]
unsafe fn write_once<T: Copy>(ptr: *mut T, value: T) {
    // SAFETY: As promised by the caller.
    unsafe { ptr.write_volatile(value) };
}

/// Calls the `bi_end_io` of `bio`.
///
/// # Safety
///
/// `bio` is finished, and nobody else's.
#[inline(always)]
unsafe fn complete(bio: NonNull<bindings::bio>) {
    // SAFETY: As promised by the caller.
    unsafe {
        if let Some(end_io) = (*bio.as_ptr()).bi_end_io {
            end_io(bio.as_ptr());
        }
    }
}

const IDLE: i32 = bindings::bio_task_state_BIO_TASK_IDLE as i32;
const GATHER: i32 = bindings::bio_task_state_BIO_TASK_GATHER as i32;

/// Adds to a counter that has one writer.
///
/// # Safety
///
/// `counter` is valid, and nobody else writes to it.
#[inline]
unsafe fn count(counter: *mut i64, nr: i64) {
    // SAFETY: As promised by the caller. Volatile, since C reads it with READ_ONCE().
    unsafe { counter.write_volatile((*counter).wrapping_add(nr)) };
}

#[inline]
fn jiffies() -> usize {
    // SAFETY: `jiffies` is a word that is always valid to read.
    unsafe { read_once(&raw const bindings::jiffies) }
}

/// Whether somebody wants to know how long bios wait. Free if not.
#[inline(always)]
fn timing() -> bool {
    // SAFETY: The key is a static one of C's.
    unsafe { static_branch_unlikely!(bindings::bio_task_timing, bindings::bio_task_timing, key) }
}

/// Microseconds since boot, cut off to what fits into `bi_cookie`: more than an hour.
fn now() -> u32 {
    // SAFETY: The clock may be read in any context.
    (unsafe { bindings::ktime_get_mono_fast_ns() } / 1000) as u32
}

/// Notes when `bio` was finished, in a field that is of no use after that unless it is polled for.
///
/// # Safety
///
/// The caller owns `bio`.
#[cold]
unsafe fn stamp(bio: NonNull<bindings::bio>) {
    let bio = bio.as_ptr();

    // SAFETY: The caller owns the bio.
    unsafe {
        if (*bio).bi_opf & (1 << bindings::req_flag_bits___REQ_POLLED) == 0 {
            (*bio).__bindgen_anon_1.bi_cookie = now();
        }
    }
}

/// Counts and returns for how many microseconds `bio` has waited; 0 if that is not known.
///
/// # Safety
///
/// The caller owns `bio`.
#[cold]
unsafe fn count_time(bio: NonNull<bindings::bio>, times: &mut [i64]) -> c_ulong {
    let bio = bio.as_ptr();
    // SAFETY: The caller owns the bio.
    let (opf, stamp) = unsafe { ((*bio).bi_opf, (*bio).__bindgen_anon_1.bi_cookie) };

    // Finished before timing was turned on, or by somebody who polled.
    if opf & (1 << bindings::req_flag_bits___REQ_POLLED) != 0 || stamp == u32::MAX {
        return 0;
    }

    let waited = now().wrapping_sub(stamp);
    let at = (u32::BITS - waited.leading_zeros()) as usize;

    if let Some(time) = times.get_mut(at.min(bindings::BIO_TASK_TIMES as usize - 1)) {
        *time = time.wrapping_add(1);
    }
    waited as c_ulong
}

/// The bios of a batch, as the queue in [`batch`] sees them.
///
/// Private, since its methods trust their caller to own the bios that it passes: `enqueue()` owns
/// the one that it pushes, and the worker those that it took.
struct Bios<'a>(&'a Batch);

impl Queue for Bios<'_> {
    type Node = NonNull<bindings::bio>;

    #[inline]
    fn newest(&self) -> Option<Self::Node> {
        NonNull::new(self.0.newest())
    }

    #[inline]
    fn swap_newest(&self, bio: Option<Self::Node>) -> Option<Self::Node> {
        let this = self.0 .0.get();
        // SAFETY: `newest` is valid as long as the batch, aligned, and only accessed atomically.
        let newest = unsafe { Atomic::from_ptr(&raw mut (*this).newest) };

        NonNull::new(newest.xchg(as_ptr(bio), Full))
    }

    #[inline]
    fn oldest(&self) -> Option<Self::Node> {
        // SAFETY: `oldest` is valid as long as the batch.
        NonNull::new(unsafe { read_once(&raw const (*self.0 .0.get()).oldest) })
    }

    #[inline]
    fn set_oldest(&self, bio: Option<Self::Node>) {
        // SAFETY: `oldest` is valid as long as the batch.
        unsafe { write_once(&raw mut (*self.0 .0.get()).oldest, as_ptr(bio)) };
    }

    #[inline]
    fn next(&self, bio: Self::Node) -> Option<Self::Node> {
        // SAFETY: The caller owns `bio`.
        NonNull::new(unsafe { read_once(&raw const (*bio.as_ptr()).bi_next) })
    }

    #[inline]
    fn set_next(&self, bio: Self::Node, next: Option<Self::Node>) {
        // SAFETY: The caller owns `bio`, or its link: nobody completes it before that is set.
        unsafe { write_once(&raw mut (*bio.as_ptr()).bi_next, as_ptr(next)) };
    }

    #[inline]
    fn device(&self, bio: Self::Node) -> usize {
        // SAFETY: The caller owns `bio`.
        unsafe { (*bio.as_ptr()).bi_bdev }.addr()
    }

    #[cold]
    fn relax(&self) {
        // SAFETY: Always safe to call.
        unsafe { bindings::dontcache_cpu_relax() };
    }
}

#[inline]
fn as_ptr(bio: Option<NonNull<bindings::bio>>) -> *mut bindings::bio {
    bio.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Gives `cpu` a worker, before it takes its first interrupt.
///
/// Context: task, on a CPU that is online, with the CPU hotplug lock held. May sleep.
///
/// # Safety
///
/// Only called for a possible CPU, after [`Batch::init`].
unsafe extern "C" fn prepare_cpu(cpu: c_uint) -> c_int {
    crate::error::from_result(|| Batch::of(cpu).make_worker().map(|()| 0))
}

/// Prepares all batches, see `bio_task_init()`.
///
/// # Safety
///
/// Only called once, before the first bio is submitted.
pub unsafe fn init() {
    for cpu in 0..nr_cpu_ids() {
        // SAFETY: `cpu` is below the number of CPUs.
        if unsafe { bindings::dontcache_cpu_possible(cpu) } {
            // SAFETY: Static variables are zeroed, and this is called once.
            unsafe { Batch::of(cpu).init(cpu) };
        }
    }

    // SAFETY: The callback stays, and gets what it expects. Nothing is to be done when a CPU goes
    // offline.
    let ret = unsafe {
        bindings::__cpuhp_setup_state(
            bindings::cpuhp_state_CPUHP_BP_PREPARE_DYN,
            c"block/bio_task:prepare".as_char_ptr(),
            true,
            Some(prepare_cpu),
            None,
            false,
        )
    };

    if ret < 0 {
        pr_warn!("bio_task: no worker threads, using the system's workqueue\n");
    }
}
