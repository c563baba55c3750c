// SPDX-License-Identifier: GPL-2.0
/*
 * The user's side of CONFIG_DONTCACHE_RUST: the policy as a boot parameter and
 * a sysctl, and the counters in debugfs. Rust has no interface to either yet.
 */

#include <linux/debugfs.h>
#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>

/* Room for the longest name of a policy and for what is certainly none. */
#define DONTCACHE_POLICY_LEN	16

static DEFINE_PER_CPU(u64, dontcache_events[DONTCACHE_NR]);

/**
 * dontcache_count - count what followed an uncached write
 * @event: what it was
 *
 * Context: any.
 */
void dontcache_count(enum dontcache_event event)
{
	this_cpu_inc(dontcache_events[event]);
}

static int __init dontcache_policy_setup(char *str)
{
	if (dontcache_set_policy(str))
		pr_warn("dontcache.policy=%s: not one of flush, lazy, kick\n",
			str);
	return 1;
}
__setup("dontcache.policy=", dontcache_policy_setup);

#ifdef CONFIG_SYSCTL
static int dontcache_policy_handler(const struct ctl_table *table, int write,
				    void *buffer, size_t *lenp, loff_t *ppos)
{
	char name[DONTCACHE_POLICY_LEN];
	const struct ctl_table copy = {
		.data	= name,
		.maxlen	= sizeof(name),
	};
	int ret;

	dontcache_get_policy(name, sizeof(name));
	ret = proc_dostring(&copy, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	return dontcache_set_policy(name);
}

static const struct ctl_table dontcache_table[] = {
	{
		.procname	= "dontcache_policy",
		.maxlen		= DONTCACHE_POLICY_LEN,
		.mode		= 0644,
		.proc_handler	= dontcache_policy_handler,
	},
};
#endif

static int dontcache_stats_show(struct seq_file *m, void *v)
{
	static const char * const names[DONTCACHE_NR] = {
		[DONTCACHE_START]	= "start",
		[DONTCACHE_SKIP]	= "skip",
		[DONTCACHE_KICK]	= "kick",
	};
	u64 sum[DONTCACHE_NR] = {};
	s64 runs = 0, bios = 0;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		struct bio_task_batch *batch = per_cpu_ptr(&bio_task_batch, cpu);

		runs += READ_ONCE(batch->nr_runs);
		bios += READ_ONCE(batch->nr_bios);
		for (i = 0; i < DONTCACHE_NR; i++)
			sum[i] += per_cpu(dontcache_events[i], cpu);
	}

	for (i = 0; i < DONTCACHE_NR; i++)
		seq_printf(m, "%s %llu\n", names[i], sum[i]);
	seq_printf(m, "runs %lld\nbios %lld\n", runs, bios);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(dontcache_stats);

static int __init dontcache_init(void)
{
#ifdef CONFIG_SYSCTL
	register_sysctl_init("vm", dontcache_table);
#endif
	debugfs_create_file("dontcache", 0444, NULL, NULL,
			    &dontcache_stats_fops);
	return 0;
}
late_initcall(dontcache_init);
