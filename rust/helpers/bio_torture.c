// SPDX-License-Identifier: GPL-2.0

/* Macros and inline functions that samples/rust/rust_bio_torture.rs cannot call. */
#if IS_ENABLED(CONFIG_SAMPLE_RUST_BIO_TORTURE)

#include <linux/interrupt.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

__rust_helper bool rust_helper_in_hardirq(void)
{
	return in_hardirq();
}

__rust_helper bool rust_helper_in_serving_softirq(void)
{
	return in_serving_softirq();
}

/* Without a preemption counter this does not see preempt_disable(). */
__rust_helper bool rust_helper_bio_torture_may_sleep(void)
{
	if (!in_task() || irqs_disabled() || rcu_preempt_depth())
		return false;
	return !IS_ENABLED(CONFIG_PREEMPT_COUNT) || preemptible();
}

__rust_helper void rust_helper_tasklet_schedule(struct tasklet_struct *tasklet)
{
	tasklet_schedule(tasklet);
}

#endif
