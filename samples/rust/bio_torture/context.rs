// SPDX-License-Identifier: GPL-2.0

//! Where code runs.

use kernel::bindings;

/// Where a bio is finished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// In a hard interrupt.
    Hard,
    /// In a softirq.
    Soft,
    /// In a task that must not sleep: interrupts or preemption off, or an RCU reader.
    Atomic,
    /// In a task that may sleep.
    Task,
}

impl Context {
    /// The context of the caller.
    pub(crate) fn current() -> Self {
        // SAFETY: These only read state of this CPU and task, from any context.
        unsafe {
            if bindings::in_hardirq() {
                Context::Hard
            } else if bindings::in_serving_softirq() {
                Context::Soft
            } else if bindings::bio_torture_may_sleep() {
                Context::Task
            } else {
                Context::Atomic
            }
        }
    }
}

/// Waits until no callback executes any more.
///
/// Only for when no bio is out. A callback gives its slot back before it returns, and may be
/// preempted there, while its code must not go away. It does not sleep there, and this waits until
/// all tasks have slept or been in user space.
///
/// Context: task, may sleep.
pub(crate) fn wait_for_callbacks() {
    // SAFETY: The caller may sleep.
    #[cfg(CONFIG_TASKS_RCU)]
    unsafe {
        bindings::synchronize_rcu_tasks()
    };

    // Without preemption a grace period is enough: every CPU has scheduled.
    #[cfg(not(CONFIG_TASKS_RCU))]
    kernel::sync::rcu::synchronize_rcu();
}
