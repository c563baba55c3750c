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

#ifdef CONFIG_DONTCACHE_PACED
#include <linux/blk-mq.h>
#include <linux/part_stat.h>

__rust_helper struct bdi_writeback *
rust_helper_dontcache_wb_begin(struct address_space *mapping,
			       struct wb_lock_cookie *cookie)
{
	return unlocked_inode_to_wb_begin(mapping->host, cookie);
}

__rust_helper void
rust_helper_dontcache_wb_end(struct address_space *mapping,
			     struct wb_lock_cookie *cookie)
{
	unlocked_inode_to_wb_end(mapping->host, cookie);
}

__rust_helper struct bdi_writeback *
rust_helper_dontcache_root_wb(struct address_space *mapping)
{
	return &inode_to_bdi(mapping->host)->wb;
}

__rust_helper unsigned long
rust_helper_dontcache_wb_stat(struct bdi_writeback *wb, enum wb_stat_item item,
			      bool exact)
{
	return exact ? wb_stat_sum(wb, item) : wb_stat(wb, item);
}

__rust_helper unsigned long rust_helper_dontcache_wb_error(void)
{
	return nr_cpu_ids * dontcache_stat_batch();
}

__rust_helper long rust_helper_dontcache_wb_left(struct bdi_writeback *wb)
{
	return percpu_counter_sum(&wb->stat[WB_DONTCACHE]) ?:
	       percpu_counter_sum(&wb->stat[WB_DONTCACHE_WRITEBACK]);
}

/* All cgroups: a request of one waits for those of the others */
__rust_helper bool rust_helper_dontcache_device_idle(struct bdi_writeback *wb)
{
	struct bdi_writeback *other;
	bool idle = true;

	rcu_read_lock();
	list_for_each_entry_rcu(other, &wb->bdi->wb_list, bdi_node) {
		idle = !atomic_read(&other->writeback_inodes);
		if (!idle)
			break;
	}
	rcu_read_unlock();
	return idle;
}

__rust_helper unsigned long
rust_helper_dontcache_io_pages(struct address_space *mapping)
{
	return inode_to_bdi(mapping->host)->io_pages;
}

__rust_helper unsigned int
rust_helper_mapping_min_folio_order(const struct address_space *mapping)
{
	return mapping_min_folio_order(mapping);
}

__rust_helper struct block_device *
rust_helper_dontcache_bdev(struct address_space *mapping)
{
	struct super_block *sb = mapping->host->i_sb;

	return sb_is_blkdev_sb(sb) ? I_BDEV(mapping->host) : sb->s_bdev;
}

/* None of a stacked device, nor of one whose driver is gone: its tags went with it */
__rust_helper unsigned long rust_helper_dontcache_tags(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);
	unsigned long tags;

	if (!queue_is_mq(q) || !percpu_ref_tryget_live(&q->q_usage_counter))
		return 0;
	tags = READ_ONCE(q->nr_requests);
	if (!(q->tag_set->flags & BLK_MQ_F_TAG_HCTX_SHARED))
		tags *= READ_ONCE(q->tag_set->map[HCTX_TYPE_DEFAULT].nr_queues);
	percpu_ref_put(&q->q_usage_counter);
	return tags;
}

/* By all partitions and by reads as well, if they are counted (iostats) */
__rust_helper unsigned int rust_helper_dontcache_inflight(struct block_device *bdev)
{
	return bdev_count_inflight(bdev_whole(bdev));
}

__rust_helper bool rust_helper_dontcache_killed(void)
{
	return fatal_signal_pending(current);
}

__rust_helper bool
rust_helper_dontcache_dirty_in(struct address_space *mapping,
			       unsigned long *first, unsigned long last)
{
	return xa_find(&mapping->i_pages, first, last, PAGECACHE_TAG_DIRTY);
}

__rust_helper bool rust_helper_dontcache_pin(struct address_space *mapping)
{
	struct super_block *sb = mapping->host->i_sb;
	struct block_device *bdev = sb_is_blkdev_sb(sb) ? I_BDEV(mapping->host) : NULL;

	if (!super_trylock_shared(sb))
		return false;
	/* The inode of a partition does not keep its disk, the device does both */
	if (bdev && kobject_get_unless_zero(&bdev->bd_device.kobj)) {
		ihold(mapping->host);
		return true;
	}
	/* The last iput() would wait for the thaw, and that for s_umount */
	if (!bdev && sb->s_writers.frozen != SB_FREEZE_COMPLETE && igrab(mapping->host))
		return true;
	up_read(&sb->s_umount);
	return false;
}

__rust_helper void rust_helper_dontcache_unpin(struct address_space *mapping)
{
	struct super_block *sb = mapping->host->i_sb;
	struct block_device *bdev = sb_is_blkdev_sb(sb) ? I_BDEV(mapping->host) : NULL;

	iput(mapping->host);
	if (bdev)
		put_device(&bdev->bd_device);
	up_read(&sb->s_umount);
}
#endif
