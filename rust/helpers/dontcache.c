// SPDX-License-Identifier: GPL-2.0

#include <linux/dontcache.h>
#include <linux/fs.h>

__rust_helper bool
rust_helper_dontcache_mapping_busy(struct address_space *mapping)
{
	/* A hint, like all that asks without a lock. */
	return data_race(mapping_tagged(mapping, PAGECACHE_TAG_WRITEBACK));
}

__rust_helper void
rust_helper_dontcache_start_batch(struct dontcache_batch *batch)
{
	dontcache_start_batch(batch);
}

__rust_helper void
rust_helper_dontcache_finish_batch(struct dontcache_batch *batch)
{
	dontcache_finish_batch(batch);
}

__rust_helper struct bio_task_batch *
rust_helper_dontcache_bio_task_batch(unsigned int cpu)
{
	return per_cpu_ptr(&bio_task_batch, cpu);
}

__rust_helper void rust_helper_dontcache_no_cgroup_migration(void)
{
#ifdef CONFIG_CGROUPS
	current->no_cgroup_migration = 1;
#endif
}
