// SPDX-License-Identifier: GPL-2.0
/*
 * Workers that let bios gather (rust/kernel/dontcache/pace.rs), and tasks that
 * wait for writeback: the one never at the same time as the other.
 */

#include <linux/blk_types.h>
#include <linux/dontcache.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <trace/events/dontcache.h>

struct cpumask bio_task_gathering __read_mostly;
DEFINE_PER_CPU(struct bio_task_waits, bio_task_waits);
struct bio_task_timing bio_task_timing = { STATIC_KEY_FALSE_INIT };

struct bio_task_batch *bio_task_batch_of(unsigned int cpu)
{
	return per_cpu_ptr(&bio_task_batch, cpu);
}

/*
 * Ends are read before begins, so a wait that goes on is never balanced by the
 * end of one whose begin was not seen.
 */
static bool somebody_waits(void)
{
	unsigned long begun = 0, ended = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		ended += READ_ONCE(per_cpu(bio_task_waits.ended, cpu));
	/* Pairs with the order of the two in one task, over its sleep. */
	smp_rmb();
	for_each_possible_cpu(cpu)
		begun += READ_ONCE(per_cpu(bio_task_waits.begun, cpu));
	return begun != ended;
}

/**
 * bio_task_gather - let the bios of a batch gather from now on
 * @batch: the batch
 *
 * Context: its worker.
 * Return: whether they may. Not if a task waits for writeback: it could be for
 * one of them.
 */
bool bio_task_gather(struct bio_task_batch *batch)
{
	cpumask_set_cpu(batch->cpu, &bio_task_gathering);
	WRITE_ONCE(batch->state, BIO_TASK_GATHER);
	/* Pairs with bio_task_wait_begin(): one of the two sees the other. */
	smp_mb();
	if (!somebody_waits())
		return true;
	bio_task_no_gather(batch);
	return false;
}

/**
 * bio_task_no_gather - make the next bio of a batch wake its worker
 * @batch: the batch
 *
 * Context: its worker, which has to look for bios after that.
 */
void bio_task_no_gather(struct bio_task_batch *batch)
{
	WRITE_ONCE(batch->state, BIO_TASK_IDLE);
	cpumask_clear_cpu(batch->cpu, &bio_task_gathering);
}

static unsigned int next_gathering(int cpu)
{
	/*
	 * Without a lock: what was set before the caller's barrier is seen, and
	 * what is set or cleared later is up to who does that.
	 */
	return data_race(cpumask_next(cpu, &bio_task_gathering));
}

/**
 * bio_task_hurry - wake all workers that let bios gather
 *
 * Context: any.
 */
void bio_task_hurry(void)
{
	unsigned int cpu;

	for (cpu = next_gathering(-1); cpu < nr_cpu_ids;
	     cpu = next_gathering(cpu)) {
		struct bio_task_batch *batch = bio_task_batch_of(cpu);

		if (READ_ONCE(batch->state) == BIO_TASK_GATHER) {
			WRITE_ONCE(batch->state, BIO_TASK_IDLE);
			wake_up_process(batch->task);
		}
	}
}

/**
 * bio_task_drops - where the current task collects folios to be dropped
 *
 * Context: task.
 * Return: NULL if it is not the worker of a batch.
 */
void *bio_task_drops(void)
{
	struct bio_task_batch *batch;

	if (!(current->flags & PF_KTHREAD) ||
	    kthread_func(current) != bio_task_worker)
		return NULL;
	batch = kthread_data(current);
	return batch->drops;
}

int bio_task_timing_on(void)
{
	static_branch_inc(&bio_task_timing.key);
	return 0;
}

void bio_task_timing_off(void)
{
	static_branch_dec(&bio_task_timing.key);
}
