// SPDX-License-Identifier: GPL-2.0
/*
 * What Rust has no way to say of CONFIG_DONTCACHE_RUST: a table of sysctls,
 * tracepoints, and a work item that is there from the start.
 */

#include <linux/dontcache.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/workqueue.h>

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <trace/events/dontcache.h>

static DECLARE_DELAYED_WORK(retry_work, dontcache_retry_work);
static struct workqueue_struct *retry_wq __ro_after_init;
#ifdef CONFIG_DONTCACHE_PACED
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/seq_file.h>

struct workqueue_struct *dontcache_wq __ro_after_init;
/* How long a device is to have something to do */
unsigned int dontcache_ms = 20;

DEVICE_ATTR_RW(dontcache_policy);
DEVICE_ATTR_RW(dontcache_max_bytes);

#ifdef CONFIG_DEBUG_FS
static int dontcache_show(struct seq_file *file, void *v)
{
	struct backing_dev_info *bdi = file->private;
	struct bdi_writeback *wb;

	rcu_read_lock();
	list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node) {
		if (!wb_tryget(wb))
			continue;
		dontcache_wb_show(file, wb);
		wb_put(wb);
	}
	rcu_read_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(dontcache);

void dontcache_debug(struct backing_dev_info *bdi)
{
	debugfs_create_file("dontcache", 0444, bdi->debug_dir, bdi,
			    &dontcache_fops);
}
#endif
#endif

/* For filesystems that are modules: generic_write_sync() */
EXPORT_SYMBOL_GPL(dontcache_write);
/* and dontcache_finish_batch(). */
EXPORT_SYMBOL_GPL(dontcache_drop_batch);

/* Look again at the folios that could not be dropped. Context: any but NMI. */
void dontcache_retry_later(void)
{
	queue_delayed_work(retry_wq ?: system_dfl_wq, &retry_work, HZ / 4);
}

#ifdef CONFIG_DONTCACHE_PACED
/* Makes of a folio what an ordinary write leaves in the cache: if it is clean, or @dirty is set. */
void dontcache_unmark(struct address_space *mapping, struct folio *folio, bool dirty)
{
	struct bdi_writeback *wb = NULL;
	unsigned long flags;
	bool writeback, tagged;

	xa_lock_irqsave(&mapping->i_pages, flags);
	if (!dirty && folio_test_dirty(folio))
		goto unlock;
	if (folio->mapping == mapping && folio_test_dropbehind(folio) &&
	    mapping_can_writeback(mapping)) {
		wb = inode_to_wb(mapping->host);
		writeback = folio_test_writeback(folio);
		tagged = xa_get_mark(&mapping->i_pages, folio->index, PAGECACHE_TAG_DIRTY);
		if (writeback || tagged)
			folio_mod_dontcache(folio, wb, -1, -writeback);
	}
	folio_clear_dropbehind(folio);
	/*
	 * After that: who cleans the folio meanwhile must not take it away once
	 * more. If it is not tagged, who dirties it is about to count it as it is.
	 */
	if (wb && dirty && tagged && folio_test_dirty(folio))
		wb_stat_mod(wb, WB_DONTCACHE_DIRTY, -folio_nr_pages(folio));
unlock:
	xa_unlock_irqrestore(&mapping->i_pages, flags);
}
EXPORT_SYMBOL_GPL(dontcache_unmark);
#endif

static const struct ctl_table dontcache_table[] = {
	{
		.procname	= "dontcache_policy",
		.mode		= 0644,
		.proc_handler	= dontcache_policy_handler,
	},
#ifdef CONFIG_DONTCACHE_PACED
	{
		.procname	= "dontcache_ms",
		.data		= &dontcache_ms,
		.maxlen		= sizeof(dontcache_ms),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= SYSCTL_ONE,
		.extra2		= SYSCTL_THREE_THOUSAND,
	},
#endif
};

/* Before the first filesystem: what is dropped needs no memory to be dropped. */
static int __init dontcache_init(void)
{
	retry_wq = alloc_workqueue("dontcache", WQ_MEM_RECLAIM | WQ_UNBOUND, 1) ?: system_dfl_wq;
#ifdef CONFIG_DONTCACHE_PACED
	dontcache_wq = alloc_workqueue("dontcache_writeback", WQ_MEM_RECLAIM | WQ_UNBOUND |
				       WQ_SYSFS, 0) ?: system_dfl_wq;
#endif
	register_sysctl_init("vm", dontcache_table);
	return 0;
}
subsys_initcall(dontcache_init);
