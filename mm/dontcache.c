// SPDX-License-Identifier: GPL-2.0
/*
 * The user's side of CONFIG_DONTCACHE_RUST: the policy as a boot parameter and
 * a sysctl, and the counters in debugfs. Rust has no interface to either yet.
 */

#include <linux/debugfs.h>
#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <trace/events/dontcache.h>

/* Room for the longest name of a policy and for what is certainly none. */
#define DONTCACHE_POLICY_LEN	16

static DEFINE_PER_CPU(u64, dontcache_events[DONTCACHE_NR]);

/**
 * dontcache_count - count what was done for uncached writes
 * @event: what it was
 * @nr: how often, or with how many pages
 *
 * Context: any.
 */
void dontcache_count(enum dontcache_event event, long nr)
{
	this_cpu_add(dontcache_events[event], nr);
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

static const char * const event_names[DONTCACHE_NR] = {
	[DONTCACHE_START]	= "start",
	[DONTCACHE_SKIP]	= "skip",
	[DONTCACHE_KICK]	= "kick",
	[DONTCACHE_DROP]	= "drop",
	[DONTCACHE_RETRY]	= "retry",
	[DONTCACHE_MAPPED]	= "mapped",
	[DONTCACHE_REFERENCED]	= "referenced",
	[DONTCACHE_MISSED]	= "missed",
};

#define NR_BIO_STATS	4

static const char * const bio_names[NR_BIO_STATS] = {
	"runs", "bios", "gathered", "hurried",
};

static void bio_stats(int cpu, s64 stats[NR_BIO_STATS])
{
	struct bio_task_batch *batch = per_cpu_ptr(&bio_task_batch, cpu);

	stats[0] += READ_ONCE(batch->nr_runs);
	stats[1] += READ_ONCE(batch->nr_bios);
	stats[2] += READ_ONCE(batch->nr_gathered);
	stats[3] += READ_ONCE(batch->nr_hurried);
}

static int stats_show(struct seq_file *m, void *v)
{
	s64 bio[NR_BIO_STATS] = {};
	u64 sum[DONTCACHE_NR] = {};
	int cpu, i;

	for_each_possible_cpu(cpu) {
		bio_stats(cpu, bio);
		for (i = 0; i < DONTCACHE_NR; i++)
			sum[i] += per_cpu(dontcache_events[i], cpu);
	}

	for (i = 0; i < DONTCACHE_NR; i++)
		seq_printf(m, "%s %llu\n", event_names[i], sum[i]);
	for (i = 0; i < NR_BIO_STATS; i++)
		seq_printf(m, "%s %lld\n", bio_names[i], bio[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* A line for each CPU. Folios are counted where they were dropped. */
static int cpus_show(struct seq_file *m, void *v)
{
	int cpu, i;

	seq_puts(m, "cpu");
	for (i = 0; i < NR_BIO_STATS; i++)
		seq_printf(m, " %s", bio_names[i]);
	for (i = 0; i < DONTCACHE_NR; i++)
		seq_printf(m, " %s", event_names[i]);
	seq_puts(m, "\n");

	for_each_possible_cpu(cpu) {
		s64 bio[NR_BIO_STATS] = {};

		bio_stats(cpu, bio);
		seq_printf(m, "%d", cpu);
		for (i = 0; i < NR_BIO_STATS; i++)
			seq_printf(m, " %lld", bio[i]);
		for (i = 0; i < DONTCACHE_NR; i++)
			seq_printf(m, " %llu", per_cpu(dontcache_events[i], cpu));
		seq_puts(m, "\n");
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cpus);

/* How long bios have waited for their worker: "below MICROSECONDS BIOS". */
static int times_show(struct seq_file *m, void *v)
{
	int cpu, i;

	for (i = 0; i < BIO_TASK_TIMES; i++) {
		s64 nr = 0;

		for_each_possible_cpu(cpu)
			nr += READ_ONCE(per_cpu(bio_task_batch.times[i], cpu));
		if (i < BIO_TASK_TIMES - 1)
			seq_printf(m, "%lu %lld\n", 1ul << i, nr);
		else
			seq_printf(m, "inf %lld\n", nr);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(times);

/* Protects timing. */
static DEFINE_MUTEX(timing_lock);
static u64 timing;

static int timing_get(void *data, u64 *val)
{
	*val = timing;
	return 0;
}

static int timing_set(void *data, u64 val)
{
	guard(mutex)(&timing_lock);
	if (val > 1)
		return -EINVAL;
	if (val > timing)
		bio_task_timing_on();
	else if (val < timing)
		bio_task_timing_off();
	timing = val;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(timing_fops, timing_get, timing_set, "%llu\n");

static int __init dontcache_init(void)
{
	struct dentry *dir = debugfs_create_dir("dontcache", NULL);

#ifdef CONFIG_SYSCTL
	register_sysctl_init("vm", dontcache_table);
#endif
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
	debugfs_create_file("cpus", 0444, dir, NULL, &cpus_fops);
	debugfs_create_file("times", 0444, dir, NULL, &times_fops);
	debugfs_create_file_unsafe("timing", 0644, dir, NULL, &timing_fops);
	return 0;
}
late_initcall(dontcache_init);
