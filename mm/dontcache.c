// SPDX-License-Identifier: GPL-2.0
/*
 * What Rust has no way to say of CONFIG_DONTCACHE_RUST: a table of sysctls,
 * tracepoints, and a work item that is there from the start.
 */

#include <linux/dontcache.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/workqueue.h>

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <trace/events/dontcache.h>

static DECLARE_DELAYED_WORK(retry_work, dontcache_retry_work);
static struct workqueue_struct *retry_wq __ro_after_init;

/* For filesystems that are modules: dontcache_finish_batch(). */
EXPORT_SYMBOL_GPL(dontcache_drop_batch);

/* Look again at the folios that could not be dropped. Context: any but NMI. */
void dontcache_retry_later(void)
{
	queue_delayed_work(retry_wq ?: system_dfl_wq, &retry_work, HZ / 4);
}

static const struct ctl_table dontcache_table[] = {
	{
		.procname	= "dontcache_policy",
		.mode		= 0644,
		.proc_handler	= dontcache_policy_handler,
	},
};

/* Before the first filesystem: what is dropped needs no memory to be dropped. */
static int __init dontcache_init(void)
{
	retry_wq = alloc_workqueue("dontcache", WQ_MEM_RECLAIM | WQ_UNBOUND, 1);
	if (!retry_wq)
		pr_warn("dontcache: no workqueue of its own\n");
	register_sysctl_init("vm", dontcache_table);
	return 0;
}
subsys_initcall(dontcache_init);
