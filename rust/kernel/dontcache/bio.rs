// SPDX-License-Identifier: GPL-2.0

//! Bios that are finished in atomic context and are to be completed by a worker.
//!
//! C headers: [`include/linux/bio.h`](srctree/include/linux/bio.h),
//! [`include/linux/dontcache.h`](srctree/include/linux/dontcache.h)

use super::batch::{
    self,
    Stack, //
};
use crate::{
    bindings,
    prelude::*,
    static_lock_class,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
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
/// - `head` is null or the newest bio of a chain through `bi_next` that ends in null. It is only
///   accessed atomically.
/// - Every bio of the chain is finished, has a `bi_end_io`, and belongs to the batch.
/// - `work`, `wq` and `cpu` do not change after [`Batch::init`].
#[repr(transparent)]
pub struct Batch(Opaque<bindings::bio_task_batch>);

impl Batch {
    /// Makes a batch of what C allocated.
    ///
    /// # Safety
    ///
    /// `ptr` is a `struct bio_task_batch` that lives for `'a`, and that nobody but this type writes
    /// to from the call of [`Batch::init`] on.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bio_task_batch) -> &'a Self {
        // CAST: `Self` is transparent over `struct bio_task_batch`.
        // SAFETY: `ptr` is valid for `'a` by the safety requirement.
        unsafe { &*ptr.cast() }
    }

    /// Prepares the batch of `cpu`, whose worker is to run on `wq`.
    ///
    /// # Safety
    ///
    /// The batch is zeroed, this is its first use, and it is never freed. `wq` is a per-CPU
    /// workqueue that is never destroyed.
    pub unsafe fn init(&self, cpu: c_int, wq: NonNull<bindings::workqueue_struct>) {
        let this = self.0.get();

        // INVARIANT: A zeroed `head` is an empty chain.
        // SAFETY: This is the first use, so nobody else accesses the fields. The lock class is
        // static, and the work item is never freed.
        unsafe {
            (*this).cpu = cpu;
            (*this).wq = wq.as_ptr();
            bindings::init_work_with_key(
                &raw mut (*this).work,
                Some(Self::work_fn),
                false,
                c"bio_task_batch::work".as_char_ptr(),
                static_lock_class!().as_ptr(),
            );
        }
    }

    /// Takes over `bio`; a worker calls its `bi_end_io` later, in task context.
    ///
    /// Context: any but NMI, with interrupts disabled. Does not sleep or allocate. The worker is
    /// queued before this returns, so that no preempted producer can hold up others.
    ///
    /// # Safety
    ///
    /// `bio` is finished, has a `bi_end_io`, and is not accessed by the caller afterwards.
    /// [`Batch::init`] has been called.
    #[inline]
    pub unsafe fn enqueue(&self, bio: NonNull<bindings::bio>) {
        // INVARIANT: `bio` is finished and given to us by the safety requirement.
        if batch::push(&Chain(self), bio) {
            let this = self.0.get();

            // Refused only if the work is pending already, then that run takes the bio. The pool
            // of a CPU that is going offline, or has gone, is served by unbound workers.
            //
            // SAFETY: The fields do not change after `init()`, by the type invariants.
            unsafe { bindings::queue_work_on((*this).cpu, (*this).wq, &raw mut (*this).work) };
        }
    }

    /// Completes all bios that are in the batch now; what comes later queues the worker again.
    ///
    /// Context: task, may sleep. One caller at a time, on any CPU.
    fn run(&self) {
        let nr = batch::drain(&Chain(self), |bio| {
            // SAFETY: By the type invariants the bio is finished, ours, and has a `bi_end_io`.
            unsafe {
                if let Some(end_io) = (*bio.as_ptr()).bi_end_io {
                    end_io(bio.as_ptr());
                }
            }
        });
        let this = self.0.get();

        // SAFETY: The counters are valid, aligned, and only accessed atomically.
        unsafe {
            Atomic::from_ptr(&raw mut (*this).nr_runs).add(1, Relaxed);
            Atomic::from_ptr(&raw mut (*this).nr_bios).add(nr as i64, Relaxed);
        }
    }

    /// The `work_func_t` of every batch.
    ///
    /// # Safety
    ///
    /// Only called by a workqueue, with the work item of a batch.
    unsafe extern "C" fn work_fn(work: *mut bindings::work_struct) {
        // SAFETY: `work` is the work item of a batch.
        let batch = unsafe { crate::container_of!(work, bindings::bio_task_batch, work) };

        // SAFETY: Batches are never freed, and this one was prepared when its work was queued.
        unsafe { Self::from_raw(batch) }.run();
    }

    #[inline]
    fn head(&self) -> &Atomic<*mut bindings::bio> {
        // SAFETY: `head` is valid as long as `self`, aligned, and only accessed atomically.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).head) }
    }
}

/// The chain of a batch, as the list in [`batch`] sees it.
///
/// Private, since its methods trust their caller to own the bios that it passes: `enqueue()` owns
/// the one that it pushes, and a drain those that it took.
struct Chain<'a>(&'a Batch);

impl Stack for Chain<'_> {
    type Node = NonNull<bindings::bio>;

    #[inline]
    fn peek(&self) -> Option<Self::Node> {
        NonNull::new(self.0.head().load(Relaxed))
    }

    #[inline]
    fn replace(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> core::result::Result<(), Option<Self::Node>> {
        match self.0.head().cmpxchg(as_ptr(old), new.as_ptr(), Release) {
            Ok(_) => Ok(()),
            Err(now) => Err(NonNull::new(now)),
        }
    }

    #[inline]
    fn take(&self) -> Option<Self::Node> {
        // INVARIANT: Null is an empty chain.
        NonNull::new(self.0.head().xchg(ptr::null_mut(), Acquire))
    }

    #[inline]
    fn next(&self, bio: Self::Node) -> Option<Self::Node> {
        // SAFETY: The caller owns `bio`, and a chain ends in null by the invariants of `Batch`.
        NonNull::new(unsafe { (*bio.as_ptr()).bi_next })
    }

    #[inline]
    fn set_next(&self, bio: Self::Node, next: Option<Self::Node>) {
        // SAFETY: The caller owns `bio`.
        unsafe { (*bio.as_ptr()).bi_next = as_ptr(next) };
    }
}

#[inline]
fn as_ptr(bio: Option<NonNull<bindings::bio>>) -> *mut bindings::bio {
    bio.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Allocates the workqueue that completes bios.
///
/// A kernel that cannot have it boots all the same, with one warning: the system's own workqueue
/// does the work, without a rescuer for when memory is short.
///
/// Context: task, may sleep.
pub fn alloc_wq() -> NonNull<bindings::workqueue_struct> {
    let flags = bindings::wq_flags_WQ_MEM_RECLAIM | bindings::wq_flags_WQ_PERCPU;

    // SAFETY: The name has no conversions, so no further arguments are read.
    let wq = unsafe { bindings::alloc_workqueue_noprof(c"bio_task".as_char_ptr(), flags, 0) };

    NonNull::new(wq).unwrap_or_else(|| {
        pr_warn!("bio_task: no memory for a workqueue, using the system's\n");
        NonNull::from(workqueue::system()).cast()
    })
}
