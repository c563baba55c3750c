// SPDX-License-Identifier: GPL-2.0

//! Bios that are finished in atomic context, and the thread of each CPU that completes them.
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
    }, //
};
use crate::{
    bindings,
    dontcache::{
        count,
        trace, //
    },
    error::{
        from_err_ptr,
        from_result,
        to_result, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        barrier, //
    },
    types::Opaque, //
};
use core::{
    ops::ControlFlow,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// How long a run takes, at most, but for its last callback: a bio may have thousands of folios. As
/// NAPI's two milliseconds, where a jiffy is one.
const JIFFIES: usize = 2;

/// The batch of one CPU. C owns the per-CPU variable, this type what is in it.
///
/// # Invariants
///
/// - `newest` is null or the newest of a chain through `bi_next`, and only accessed atomically.
/// - Every bio of the chain is finished, has a `bi_end_io`, and belongs to the batch.
/// - `task` and `cpu` do not change from before the CPU comes up for the first time. `task` is the
///   worker then, a thread that never ends, and there is a reference to it.
#[repr(transparent)]
pub struct Batch(Opaque<bindings::bio_task_batch>);

impl Batch {
    /// Makes a batch of what C allocated.
    ///
    /// # Safety
    ///
    /// `ptr` is a `struct bio_task_batch` that lives for `'a`, and nobody but this type uses it.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bio_task_batch) -> &'a Self {
        // CAST: `Self` is transparent over `struct bio_task_batch`.
        // SAFETY: `ptr` is valid for `'a` by the safety requirement.
        unsafe { &*ptr.cast() }
    }

    /// Takes over `bio`; the worker calls its `bi_end_io` later, in task context.
    ///
    /// Context: any but NMI, on the batch's CPU, with interrupts off. Does not sleep or allocate.
    ///
    /// # Safety
    ///
    /// `bio` is finished, has a `bi_end_io`, and is not accessed by the caller afterwards.
    #[inline]
    pub unsafe fn enqueue(&self, bio: NonNull<bindings::bio>) {
        count(bindings::vm_event_item_BIO_TASK_DEFER, 1);
        // INVARIANT: `bio` is finished and given to us by the safety requirement.
        batch::push(&Bios(self), bio);
    }

    /// The worker's life.
    fn work(&self) -> ! {
        let queue = Bios(self);
        let mut backlog = Backlog::new();
        let mut drops = bindings::dontcache_batch::default();

        loop {
            // SAFETY: Callbacks reach it through the current task, and nothing else uses it until
            // the run is over.
            unsafe { bindings::dontcache_start_batch(&mut drops) };
            let start = jiffies();
            let nr = backlog.run(&queue, BUDGET, |bio| {
                // SAFETY: It was in the batch, whose bios are finished, have a `bi_end_io` and are
                // ours, and nobody has had it since.
                unsafe { complete(bio) }
                if jiffies().wrapping_sub(start) < JIFFIES {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });

            // SAFETY: This is what was started.
            unsafe { bindings::dontcache_finish_batch(&mut drops) };
            if nr > 0 {
                count(bindings::vm_event_item_BIO_TASK_RUN, 1);
                count(bindings::vm_event_item_BIO_TASK_COMPLETE, nr);
                // SAFETY: Always safe to call, and no locks are held.
                unsafe {
                    trace::bio_task_run((*self.0.get()).cpu, nr as c_uint);
                    bindings::cond_resched_tasks_rcu_qs();
                }
            }
            if backlog.is_empty() {
                batch::idle(&queue);
            }
        }
    }

    /// Makes the worker, which stays when its CPU goes away: it runs elsewhere then.
    ///
    /// Context: task, may sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and what `kthread_create()` says.
    ///
    /// # Safety
    ///
    /// This is the batch of `cpu`, a possible CPU that is not up.
    unsafe fn make_worker(&self, cpu: u32) -> Result {
        let this = self.0.get();

        // SAFETY: The CPU is not up, so nobody else uses the fields.
        if unsafe { !(*this).task.is_null() } {
            return Ok(());
        }

        // SAFETY: The worker gets its own batch, which lives as long as the kernel, and the format
        // is one of an int.
        let task = from_err_ptr(unsafe {
            (*this).cpu = cpu;
            bindings::kthread_create_on_node(
                Some(worker),
                this.cast(),
                bindings::cpu_to_node(cpu as c_int),
                c"bio_task/%d".as_char_ptr(),
                cpu,
            )
        })?;

        // A preference, other than a binding, survives the CPU's absence.
        //
        // SAFETY: The thread has not been woken yet.
        to_result(unsafe { bindings::kthread_affine_preferred(task, bindings::cpumask_of(cpu)) })
            .inspect_err(|_| {
            // SAFETY: The thread has not run, so it stops without having called its function.
            unsafe { bindings::kthread_stop(task) };
        })?;
        // A callback that oopses ends it after all: bios wait for ever then, but nobody may wake
        // what is no task any more.
        //
        // INVARIANT: It is this batch's worker, never ends, and the reference is never put.
        // SAFETY: As above.
        unsafe {
            bindings::get_task_struct(task);
            (*this).task = task;
            bindings::wake_up_process(task);
        }
        Ok(())
    }
}

/// The time.
#[inline(always)]
fn jiffies() -> usize {
    // SAFETY: It is always there. The timer's interrupt sets it meanwhile.
    unsafe { (&raw const bindings::jiffies).read_volatile() }
}

/// Calls the `bi_end_io` of `bio`.
///
/// # Safety
///
/// `bio` is finished, has a `bi_end_io`, and is nobody else's.
#[inline(always)]
unsafe fn complete(bio: NonNull<bindings::bio>) {
    // SAFETY: As promised by the caller.
    unsafe {
        trace::bio_task_complete(bio.as_ptr());
        ((*bio.as_ptr()).bi_end_io.unwrap_unchecked())(bio.as_ptr());
    }
}

/// The function of the workers.
///
/// # Safety
///
/// Only run by a thread that was made for the batch `batch`, one for each.
unsafe extern "C" fn worker(batch: *mut c_void) -> c_int {
    // A cgroup with a limit to its CPU time would hold up everybody's completions.
    //
    // SAFETY: This is the current task.
    unsafe { bindings::dontcache_no_cgroup_migration() };
    // SAFETY: As promised by the caller.
    unsafe { Batch::from_raw(batch.cast()) }.work()
}

/// A batch, as [`batch`] sees it.
struct Bios<'a>(&'a Batch);

impl Bios<'_> {
    #[inline]
    fn word(&self) -> &Atomic<*mut bindings::bio> {
        // SAFETY: `newest` is valid as long as the batch, aligned, and only accessed atomically.
        unsafe { Atomic::from_ptr(&raw mut (*self.0 .0.get()).newest) }
    }
}

// SAFETY: The type is private, and used for nothing but calls of `push()` with a bio that the
// caller owns, and `run()` and `idle()` by the worker.
unsafe impl Queue for Bios<'_> {
    type Node = NonNull<bindings::bio>;

    #[inline]
    fn newest(&self) -> Option<Self::Node> {
        NonNull::new(self.word().load(Relaxed))
    }

    #[inline]
    fn replace_newest(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> Result<(), Option<Self::Node>> {
        self.word()
            .cmpxchg(as_ptr(old), new.as_ptr(), Release)
            .map(|_| ())
            .map_err(NonNull::new)
    }

    #[inline]
    fn take_newest(&self) -> Option<Self::Node> {
        NonNull::new(self.word().xchg(ptr::null_mut(), Acquire))
    }

    #[inline]
    fn next(&self, bio: Self::Node) -> Option<Self::Node> {
        // SAFETY: The caller owns `bio`.
        NonNull::new(unsafe { (*bio.as_ptr()).bi_next })
    }

    #[inline]
    fn set_next(&self, bio: Self::Node, next: Option<Self::Node>) {
        // SAFETY: The caller owns `bio`.
        unsafe { (*bio.as_ptr()).bi_next = as_ptr(next) };
    }

    #[inline]
    fn device(&self, bio: Self::Node) -> usize {
        // SAFETY: The caller owns `bio`.
        unsafe { (*bio.as_ptr()).bi_bdev }.addr()
    }

    #[inline]
    fn wake(&self) {
        // SAFETY: The CPU is or was up, so the worker is there, and there is a reference to it.
        unsafe { bindings::wake_up_process((*self.0 .0.get()).task) };
    }

    #[inline]
    fn set_idle(&self) {
        // SAFETY: This is the current task's own state.
        unsafe { bindings::__set_current_state(bindings::TASK_IDLE) };
    }

    #[inline]
    fn set_running(&self) {
        // SAFETY: As above.
        unsafe { bindings::__set_current_state(bindings::TASK_RUNNING) };
    }

    #[inline]
    fn sleep(&self) {
        // SAFETY: The worker holds no locks.
        unsafe { bindings::schedule() };
    }

    #[inline]
    fn barrier(&self) {
        barrier::smp_mb(barrier::Full);
    }
}

#[inline]
fn as_ptr(bio: Option<NonNull<bindings::bio>>) -> *mut bindings::bio {
    bio.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Gives `cpu` a worker, before it takes its first interrupt.
///
/// Context: task, with the CPU hotplug lock held. May sleep.
///
/// # Safety
///
/// Only called for a possible CPU that is not up, or before the first bio is submitted.
unsafe extern "C" fn prepare_cpu(cpu: c_uint) -> c_int {
    from_result(|| {
        // SAFETY: Per-CPU variables live as long as the kernel.
        let batch = unsafe { Batch::from_raw(bindings::dontcache_bio_task_batch(cpu)) };

        // SAFETY: As promised by the caller.
        unsafe { batch.make_worker(cpu) }.map(|()| 0)
    })
}

/// Gives each CPU a worker when it first comes up, see `bio_task_init()`.
///
/// # Panics
///
/// If there is no memory for that at boot, as without block I/O there is no system.
///
/// # Safety
///
/// Only called once, before the first bio is submitted.
pub unsafe fn init() {
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

    assert!(ret >= 0, "bio_task: no worker threads");
}
