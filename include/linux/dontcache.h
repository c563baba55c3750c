/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that C and Rust call on each other: rust/kernel/dontcache.rs. */
#ifndef _LINUX_DONTCACHE_H
#define _LINUX_DONTCACHE_H

#include <linux/folio_batch.h>
#include <linux/percpu-defs.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sysctl.h>
#include <linux/types.h>

struct address_space;
struct bio;
struct folio;
struct work_struct;

/* Finished bios of one CPU: rust/kernel/dontcache/completion/worker.rs. */
struct bio_task_batch {
	struct bio *newest;
	struct task_struct *task;
	unsigned int cpu;
};

DECLARE_PER_CPU(struct bio_task_batch, bio_task_batch);

/* block/bio_task.rs, called by block/bio.c. */
void bio_task_init(void);
void bio_task_enqueue(struct bio_task_batch *batch, struct bio *bio);

/* Folios whose writeback ended, with a reference to each, and their pages. */
struct dontcache_batch {
	struct folio_batch folios;
	unsigned long pages;
};

/* mm/filemap_dontcache.rs, called by mm/filemap.c, mm/dontcache.c and below. */
void dontcache_end_writeback(struct folio *folio, bool again);
void dontcache_moved(struct folio *to, struct folio *from);
void dontcache_drop_batch(struct dontcache_batch *batch);
void dontcache_retry_work(struct work_struct *work);
int dontcache_policy_handler(const struct ctl_table *table, int write,
			     void *buffer, size_t *lenp, loff_t *ppos);

/* mm/, called by rust/kernel/dontcache/. */
#ifdef CONFIG_MEMORY_HOTPLUG
bool try_get_online_mems(void);
#endif
long filemap_dontcache_writeback(struct address_space *mapping, loff_t first,
				 loff_t last, long nr);
void dontcache_retry_later(void);
#ifdef CONFIG_DONTCACHE_PACED

#include <linux/backing-dev.h>
#include <linux/pagemap.h>

/* mm/filemap_dontcache.rs, called by mm/backing-dev.c and fs/inode.c. */
int dontcache_wb_init(struct bdi_writeback *wb, gfp_t gfp);
void dontcache_wb_exit(struct bdi_writeback *wb);
void dontcache_forget(struct address_space *mapping);
void dontcache_wb_show(struct seq_file *file, struct bdi_writeback *wb);

struct device;
struct device_attribute;

ssize_t dontcache_policy_show(struct device *dev, struct device_attribute *attr,
			      char *buf);
ssize_t dontcache_policy_store(struct device *dev, struct device_attribute *attr,
			       const char *buf, size_t count);
ssize_t dontcache_max_bytes_show(struct device *dev, struct device_attribute *attr,
				 char *buf);
ssize_t dontcache_max_bytes_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count);

/* mm/dontcache.c */
extern struct workqueue_struct *dontcache_wq;
extern unsigned int dontcache_ms;
extern struct device_attribute dev_attr_dontcache_policy;
extern struct device_attribute dev_attr_dontcache_max_bytes;
void dontcache_debug(struct backing_dev_info *bdi);
void dontcache_unmark(struct address_space *mapping, struct folio *folio,
		      bool dirty);

/* What all CPUs may have counted and not added up: half of a bound of 16 MiB, see is_small() */
static inline int dontcache_stat_batch(void)
{
	return clamp(2048 / (int)nr_cpu_ids, 1, (int)WB_STAT_BATCH);
}

/*
 * WB_DONTCACHE: pages of dropbehind folios that are tagged as dirty or as under
 * writeback, and of the latter WB_DONTCACHE_WRITEBACK. All of that changes under
 * the i_pages lock, so the counts are exact.
 */
static inline void folio_mod_dontcache(const struct folio *folio,
				       struct bdi_writeback *wb, int all,
				       int writeback)
{
	long nr = folio_nr_pages(folio);

	if (!folio_test_dropbehind(folio))
		return;
	if (all)
		percpu_counter_add_batch(&wb->stat[WB_DONTCACHE], all * nr, dontcache_stat_batch());
	if (writeback)
		percpu_counter_add_batch(&wb->stat[WB_DONTCACHE_WRITEBACK], writeback * nr,
					 dontcache_stat_batch());
}

static inline bool folio_is_dontcache(const struct folio *folio)
{
	return folio_test_dropbehind(folio);
}
#else
#include <linux/page-flags.h>

struct backing_dev_info;
struct bdi_writeback;

static inline int dontcache_wb_init(struct bdi_writeback *wb, gfp_t gfp) { return 0; }
static inline void dontcache_wb_exit(struct bdi_writeback *wb) {}
static inline void dontcache_forget(struct address_space *mapping) {}
static inline void dontcache_debug(struct backing_dev_info *bdi) {}

static inline void dontcache_unmark(struct address_space *mapping,
				    struct folio *folio, bool dirty)
{
	folio_clear_dropbehind(folio);
}

static inline void folio_mod_dontcache(const struct folio *folio,
				       struct bdi_writeback *wb, int all,
				       int writeback)
{
}

static inline bool folio_is_dontcache(const struct folio *folio)
{
	return false;
}
#endif

/**
 * dontcache_start_batch - drop folios together whose writeback this task ends
 * @batch: on the stack, until dontcache_finish_batch()
 *
 * As blk_start_plug(): the outermost counts. For tasks that end the writeback
 * of several folios and do not sleep for long: 31 cannot be freed meanwhile.
 * Does nothing in interrupts, whose batches are never the task's.
 */
static inline void dontcache_start_batch(struct dontcache_batch *batch)
{
#ifdef CONFIG_DONTCACHE_RUST
	if (!in_task() || current->dontcache_batch)
		return;
	folio_batch_init(&batch->folios);
	batch->pages = 0;
	WRITE_ONCE(current->dontcache_batch, batch);
#endif
}

/**
 * dontcache_finish_batch - drop the folios of a batch
 * @batch: what dontcache_start_batch() got
 */
static inline void dontcache_finish_batch(struct dontcache_batch *batch)
{
#ifdef CONFIG_DONTCACHE_RUST
	if (READ_ONCE(current->dontcache_batch) != batch)
		return;
	WRITE_ONCE(current->dontcache_batch, NULL);
	if (folio_batch_count(&batch->folios))
		dontcache_drop_batch(batch);
#endif
}

#endif /* _LINUX_DONTCACHE_H */
