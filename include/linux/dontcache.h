/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract between C and Rust of CONFIG_DONTCACHE_RUST: every function
 * that one calls on the other. What the pieces are for and how data flows:
 * rust/kernel/dontcache.rs.
 */
#ifndef _LINUX_DONTCACHE_H
#define _LINUX_DONTCACHE_H

#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/jump_label.h>
#include <linux/percpu-defs.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct address_space;
struct bio;
struct folio;
struct task_struct;

/**
 * enum bio_task_state - what a bio does that finds its CPU's batch empty
 * @BIO_TASK_IDLE:	it wakes the worker.
 * @BIO_TASK_GATHER:	nothing, the worker wakes of itself in a few
 *			milliseconds, or is woken when there are enough. Nobody
 *			waits for writeback meanwhile.
 */
enum bio_task_state {
	BIO_TASK_IDLE,
	BIO_TASK_GATHER,
};

/* Times from bio_endio() to completion: below 1 us, below 2, 4, 8, ... */
#define BIO_TASK_TIMES	24

/**
 * struct bio_task_batch - finished bios of one CPU that wait for its worker
 * @newest:	the bio that came last, NULL if there is none. Atomic accesses
 *		only: this CPU adds, the worker takes all, from whatever CPU it
 *		runs on.
 * @oldest:	the bio that came first, linked through bi_next to newer ones.
 * @room:	about how many more may gather before @task is woken; written by
 *		this CPU, and old while the batch is empty.
 * @task:	the worker; NULL before its CPU first comes up, or if there was
 *		no memory for it.
 * @state:	enum bio_task_state; the worker sets it, and whoever begins to
 *		wait for writeback resets it.
 * @cpu:	where @task runs while that CPU is online.
 * @work:	does what @task does if there is none.
 * @drops:	folios that are to be dropped at the end of the worker's run;
 *		the worker's own.
 * @nr_runs:	how often the worker has run; written by the worker only, as
 *		all that follows.
 * @nr_bios:	how many bios it has completed.
 * @nr_gathered: how many of its runs followed a time of gathering.
 * @nr_hurried:	how often that time was cut short by somebody who waits.
 * @times:	bios by the time that they have waited.
 */
struct bio_task_batch {
	struct bio *newest;
	struct bio *oldest;
	struct task_struct *task;
	int state;
	unsigned int room;
	int cpu;
	struct work_struct work;
	void *drops;
	s64 nr_runs;
	s64 nr_bios;
	s64 nr_gathered;
	s64 nr_hurried;
	s64 times[BIO_TASK_TIMES];
};

DECLARE_PER_CPU_ALIGNED(struct bio_task_batch, bio_task_batch);

/* block/bio_task.rs, called by block/bio.c. */
void bio_task_init(void);
void bio_task_enqueue(struct bio_task_batch *batch, struct bio *bio);

int bio_task_worker(void *batch);

/* block/bio_task_wait.c, called by rust/kernel/dontcache/bio.rs. */
struct bio_task_batch *bio_task_batch_of(unsigned int cpu);
bool bio_task_gather(struct bio_task_batch *batch);
void bio_task_no_gather(struct bio_task_batch *batch);

/* block/bio_task_wait.c, called by mm/dontcache.c and mm/dontcache_drop.c. */
void *bio_task_drops(void);
int bio_task_timing_on(void);
void bio_task_timing_off(void);

/* Whether bios are stamped when they finish, to know how long they wait. */
struct bio_task_timing {
	struct static_key_false key;
};

extern struct bio_task_timing bio_task_timing;

/**
 * struct bio_task_waits - waits for writeback
 * @begun:	on this CPU.
 * @ended:	on this CPU.
 */
struct bio_task_waits {
	unsigned long begun;
	unsigned long ended;
};

/* CPUs with a worker that lets bios gather. Seldom written, often read. */
extern struct cpumask bio_task_gathering;
DECLARE_PER_CPU(struct bio_task_waits, bio_task_waits);
void bio_task_hurry(void);

/**
 * bio_task_wait_begin - tell that this task is about to wait for writeback
 *
 * What it waits for may have finished and be with a worker that gathers more.
 * From now to bio_task_wait_end() no worker does.
 *
 * Context: task.
 */
static inline void bio_task_wait_begin(void)
{
#ifdef CONFIG_DONTCACHE_RUST
	this_cpu_inc(bio_task_waits.begun);
	/* Pairs with bio_task_gather(): one of the two sees the other. */
	smp_mb();
	/* What was set before that is seen; it needs no lock. */
	if (unlikely(!data_race(cpumask_empty(&bio_task_gathering))))
		bio_task_hurry();
#endif
}

/**
 * bio_task_wait_end - tell that a wait for writeback is over
 *
 * Context: task, maybe on another CPU than it began on.
 */
static inline void bio_task_wait_end(void)
{
#ifdef CONFIG_DONTCACHE_RUST
	this_cpu_inc(bio_task_waits.ended);
#endif
}

/**
 * enum dontcache_event - what is counted
 * @DONTCACHE_START:	after an uncached write, writeback of its range was
 *			started
 * @DONTCACHE_SKIP:	nothing, the mapping was under writeback already
 * @DONTCACHE_KICK:	the flusher was woken
 * @DONTCACHE_DROP:	pages that were dropped
 * @DONTCACHE_RETRY:	folios that could not be, and are tried again
 * @DONTCACHE_MAPPED:	folios that stay, since somebody maps them
 * @DONTCACHE_REFERENCED: folios that stay, since somebody uses them
 * @DONTCACHE_MISSED:	folios that stay until something else writes them back
 *			or reclaims them: they were never free, or too many
 * @DONTCACHE_NR:	how many there are
 */
enum dontcache_event {
	DONTCACHE_START,
	DONTCACHE_SKIP,
	DONTCACHE_KICK,
	DONTCACHE_DROP,
	DONTCACHE_RETRY,
	DONTCACHE_MAPPED,
	DONTCACHE_REFERENCED,
	DONTCACHE_MISSED,
	DONTCACHE_NR,
};

/*
 * A bit of address_space::flags, as those in enum mapping_flags: buffers of its
 * folios that nobody uses may be freed without ->release_folio().
 */
#define AS_RELEASE_BUFFERS	11

/* How many folios are dropped together; as many as can be freed together. */
#define DONTCACHE_DROPS		31

/* What dontcache_lock() found. */
#define DONTCACHE_FOLIO_LOCKED		0x01
#define DONTCACHE_FOLIO_GONE		0x02
#define DONTCACHE_FOLIO_WRITEBACK	0x04
#define DONTCACHE_FOLIO_DIRTY		0x08
#define DONTCACHE_FOLIO_MAPPED		0x10
#define DONTCACHE_FOLIO_REFERENCED	0x20

/* mm/filemap_dontcache.rs, called by mm/filemap.c and mm/dontcache.c. */
long dontcache_limit(struct address_space *mapping, s64 first, s64 last,
		     ssize_t bytes, bool lazy, bool nowait);
int dontcache_set_policy(const char *name);
void dontcache_get_policy(char *buf, size_t size);
void dontcache_drop(struct folio *folio, void *drops, unsigned int tries);

/* mm/dontcache.c, called by rust/kernel/dontcache/mapping.rs and folio.rs. */
void dontcache_count(enum dontcache_event event, long nr);

/* mm/dontcache_drop.c, called by mm/filemap.c. */
void dontcache_end_dropbehind(struct folio *folio);

/* mm/dontcache_drop.c, called by rust/kernel/dontcache/folio.rs. */
unsigned int dontcache_lock(struct folio *folio);
unsigned int dontcache_remove(struct folio **folios, unsigned int nr);
bool dontcache_retry(struct folio *folio, unsigned int tries);

#endif /* _LINUX_DONTCACHE_H */
