// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>
#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/topology.h>

__rust_helper bool
rust_helper_dontcache_mapping_busy(struct address_space *mapping)
{
	/* A hint, like all that asks without a lock. */
	return data_race(mapping_tagged(mapping, PAGECACHE_TAG_WRITEBACK));
}

__rust_helper struct address_space *
rust_helper_dontcache_mapping(struct folio *folio)
{
	return folio->mapping;
}

__rust_helper void rust_helper_dontcache_leave(struct folio *folio)
{
	folio_clear_dropbehind(folio);
}

__rust_helper void rust_helper_dontcache_put(struct folio *folio)
{
	folio_put(folio);
}

__rust_helper void rust_helper_dontcache_cond_resched(void)
{
	cond_resched();
}

__rust_helper void rust_helper_dontcache_set_task_idle(void)
{
	set_current_state(TASK_IDLE);
}

__rust_helper void rust_helper_dontcache_set_task_running(void)
{
	__set_current_state(TASK_RUNNING);
}

__rust_helper bool rust_helper_dontcache_cpu_possible(unsigned int cpu)
{
	return cpu_possible(cpu);
}

__rust_helper const struct cpumask *rust_helper_dontcache_cpumask_of(int cpu)
{
	return cpumask_of(cpu);
}

__rust_helper int rust_helper_dontcache_cpu_to_node(int cpu)
{
	return cpu_to_node(cpu);
}

__rust_helper void rust_helper_dontcache_cpu_relax(void)
{
	cpu_relax();
}
