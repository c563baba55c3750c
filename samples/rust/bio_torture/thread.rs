// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that are joined.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)

use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::Arc,
    types::NotThreadSafe, //
};

/// What a thread does.
pub(crate) trait Run: Send + Sync + 'static {
    /// Runs in the thread. Returns soon after `stop` is requested, or before.
    fn run(&self, stop: &Stop);
}

/// Whether somebody waits for this thread to end.
///
/// # Invariants
///
/// Only exists in the thread of a [`Thread`].
pub(crate) struct Stop(NotThreadSafe);

impl Stop {
    pub(crate) fn requested(&self) -> bool {
        // SAFETY: The current task is a kthread by the type invariants.
        unsafe { bindings::kthread_should_stop() }
    }
}

/// A running thread. Dropping it waits for the thread's end.
///
/// # Invariants
///
/// `task` is a thread that runs [`main`] with `data`, and this has a reference to it.
pub(crate) struct Thread<T: Run> {
    task: NonNull<bindings::task_struct>,
    /// Dropped after the thread has ended: `drop()` runs before fields are dropped.
    _data: Arc<T>,
}

// SAFETY: A task may be stopped from any thread, and `T` is `Send` and `Sync`.
unsafe impl<T: Run> Send for Thread<T> {}

// SAFETY: Nothing can be done with a `&Thread`.
unsafe impl<T: Run> Sync for Thread<T> {}

impl<T: Run> Thread<T> {
    /// Starts a thread that runs `data`.
    ///
    /// Context: task, may sleep.
    pub(crate) fn spawn(name: &'static CStr, data: Arc<T>) -> Result<Self> {
        // SAFETY: The format takes one string. `data` outlives the thread, which `drop()` joins.
        let task = from_err_ptr(unsafe {
            bindings::kthread_create_on_node(
                Some(main::<T>),
                Arc::as_ptr(&data).cast_mut().cast(),
                bindings::NUMA_NO_NODE,
                c"%s".as_char_ptr(),
                name.as_char_ptr(),
            )
        })?;

        // SAFETY: The thread waits to be woken, so it is there. The reference keeps the task from
        // being freed if it ends before it is stopped.
        unsafe {
            bindings::get_task_struct(task);
            bindings::wake_up_process(task);
        }

        // INVARIANT: The thread was made and the reference taken above.
        Ok(Self {
            task: NonNull::new(task).ok_or(ENOMEM)?,
            _data: data,
        })
    }
}

impl<T: Run> Drop for Thread<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants this has a reference, which is given up here.
        unsafe { bindings::kthread_stop_put(self.task.as_ptr()) };
    }
}

/// The function of every thread.
///
/// # Safety
///
/// Only called by a kthread that [`Thread::spawn`] made for a `T`.
unsafe extern "C" fn main<T: Run>(data: *mut c_void) -> c_int {
    // INVARIANT: This is the thread.
    let stop = Stop(NotThreadSafe);

    // SAFETY: `Thread` has a reference to the data until this returns.
    unsafe { &*data.cast::<T>() }.run(&stop);
    0
}
