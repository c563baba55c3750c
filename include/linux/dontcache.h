/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract between C and Rust of CONFIG_DONTCACHE_RUST: every function
 * that one calls on the other. What the pieces are for and how data flows:
 * rust/kernel/dontcache.rs.
 */
#ifndef _LINUX_DONTCACHE_H
#define _LINUX_DONTCACHE_H

#include <linux/percpu-defs.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct address_space;
struct bio;

/**
 * struct bio_task_batch - finished bios of one CPU that wait for its worker
 * @head:	newest bio, linked through bi_next to older ones; NULL if none.
 *		Atomic accesses only: this CPU adds, the worker takes them all,
 *		from whatever CPU it runs on.
 * @work:	the worker; queued whenever @head stops being NULL.
 * @wq:		where @work is queued.
 * @cpu:	where @work runs while that CPU is online.
 * @nr_runs:	how often the worker has run; written by the worker only.
 * @nr_bios:	how many bios it has completed; written by the worker only.
 */
struct bio_task_batch {
	struct bio *head;
	struct work_struct work;
	struct workqueue_struct *wq;
	int cpu;
	s64 nr_runs;
	s64 nr_bios;
};

DECLARE_PER_CPU(struct bio_task_batch, bio_task_batch);

/* block/bio_task.rs, called by block/bio.c. */
struct workqueue_struct *bio_task_alloc_wq(void);
void bio_task_init(struct bio_task_batch *batch, int cpu,
		   struct workqueue_struct *wq);
void bio_task_enqueue(struct bio_task_batch *batch, struct bio *bio);

/**
 * enum dontcache_event - what followed an uncached write
 * @DONTCACHE_START:	writeback of its range was started
 * @DONTCACHE_SKIP:	nothing, the mapping was under writeback already
 * @DONTCACHE_KICK:	the flusher was woken
 * @DONTCACHE_NR:	how many there are
 */
enum dontcache_event {
	DONTCACHE_START,
	DONTCACHE_SKIP,
	DONTCACHE_KICK,
	DONTCACHE_NR,
};

/* mm/filemap_dontcache.rs, called by mm/filemap.c and mm/dontcache.c. */
long dontcache_limit(struct address_space *mapping, s64 first, s64 last,
		     ssize_t bytes, bool lazy, bool nowait);
int dontcache_set_policy(const char *name);
void dontcache_get_policy(char *buf, size_t size);

/* mm/dontcache.c, called by rust/kernel/dontcache/mapping.rs. */
void dontcache_count(enum dontcache_event event);

#endif /* _LINUX_DONTCACHE_H */
