// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of task-context bio completion, through what block drivers and
 * filesystems see of it: bio_endio() and BIO_COMPLETE_IN_TASK. So they run on
 * the C code as well, which fails bio_task_hotunplug and bio_task_fairness.
 */

#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/blk_types.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/dontcache.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/smp.h>
#include <linux/wait.h>

#define NR_BIOS		4096
/* How many bios finish in one interrupt. */
#define BURST		4
#define NR_ROUNDS	50
#define VICTIM		1
#define TIMEOUT		(10 * HZ)
/* BUDGET of rust/kernel/dontcache/backlog.rs. */
#define BUDGET		64

struct fake_bio {
	struct bio bio;
	int seq;
	atomic_t ended;
};

/* All bios of one round finish on one CPU, so they must end in that order. */
struct bio_task_test {
	struct fake_bio *bios;
	/* Written on one CPU only, with interrupts off. */
	int queued;
	atomic_t ended;
	atomic_t twice;
	atomic_t disordered;
	atomic_t bad_context;
	/* By a workqueue's worker, as all are in C. */
	atomic_t by_workqueue;
	wait_queue_head_t wait;
	struct irq_work irq_work;
};

/* Hotplug callbacks get a CPU number and nothing else. */
static struct bio_task_test tst;

static void fake_end_io(struct bio *bio)
{
	struct fake_bio *fake = container_of(bio, struct fake_bio, bio);

	if (!in_task() || irqs_disabled() ||
	    (IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible()))
		atomic_inc(&tst.bad_context);
	else if (fake->seq % 64 == 63)
		usleep_range(50, 100);

	if (current->flags & PF_WQ_WORKER)
		atomic_inc(&tst.by_workqueue);
	if (atomic_inc_return(&fake->ended) != 1)
		atomic_inc(&tst.twice);
	if (atomic_inc_return(&tst.ended) != fake->seq + 1)
		atomic_inc(&tst.disordered);
	wake_up(&tst.wait);
}

/* Hard interrupt context, always on the same CPU. */
static void finish_bios(void *unused)
{
	int i;

	for (i = 0; i < BURST && tst.queued < NR_BIOS; i++) {
		struct bio *bio = &tst.bios[tst.queued].bio;

		WRITE_ONCE(tst.queued, tst.queued + 1);
		bio_endio(bio);
	}
}

static void finish_bios_irq_work(struct irq_work *work)
{
	finish_bios(NULL);
}

static bool wait_for(int nr)
{
	return wait_event_timeout(tst.wait, atomic_read(&tst.ended) >= nr,
				  TIMEOUT);
}

static void start_round(void)
{
	int i;

	tst.queued = 0;
	atomic_set(&tst.ended, 0);
	atomic_set(&tst.twice, 0);
	atomic_set(&tst.disordered, 0);
	atomic_set(&tst.bad_context, 0);
	atomic_set(&tst.by_workqueue, 0);
	for (i = 0; i < NR_BIOS; i++) {
		struct fake_bio *fake = &tst.bios[i];

		bio_init(&fake->bio, NULL, NULL, 0, REQ_OP_WRITE);
		bio_set_flag(&fake->bio, BIO_COMPLETE_IN_TASK);
		fake->bio.bi_end_io = fake_end_io;
		fake->seq = i;
		atomic_set(&fake->ended, 0);
	}
}

static void check_round(struct kunit *test)
{
	KUNIT_ASSERT_TRUE(test, wait_for(tst.queued));
	KUNIT_ASSERT_GT(test, tst.queued, 0);
	KUNIT_ASSERT_EQ(test, atomic_read(&tst.ended), tst.queued);
	KUNIT_ASSERT_EQ(test, atomic_read(&tst.twice), 0);
	KUNIT_ASSERT_EQ(test, atomic_read(&tst.disordered), 0);
	KUNIT_ASSERT_EQ(test, atomic_read(&tst.bad_context), 0);
}

static void check_cpu(struct kunit *test, int cpu)
{
	int i;

	start_round();
	for (i = 0; i < NR_BIOS / BURST; i++)
		KUNIT_ASSERT_EQ(test, 0,
				smp_call_function_single(cpu, finish_bios, NULL,
							 true));
	KUNIT_ASSERT_EQ(test, tst.queued, NR_BIOS);
	check_round(test);
}

/* Bios that finish in hard interrupts of each CPU end in tasks, in order. */
static void bio_task_context(struct kunit *test)
{
	int cpu;

	for_each_online_cpu(cpu)
		check_cpu(test, cpu);
}

#ifdef CONFIG_DONTCACHE_RUST
/* The worker of CPU 0, while bio_task_no_worker has it. */
static struct task_struct *worker;

static void give_worker_back(void)
{
	struct bio_task_batch *batch = bio_task_batch_of(0);

	if (!worker)
		return;
	/* There must not be two that take bios. */
	flush_work(&batch->work);
	WRITE_ONCE(batch->task, worker);
	worker = NULL;
}

/* Where there was no memory for a worker, the system's workqueue does its work. */
static void bio_task_no_worker(struct kunit *test)
{
	struct bio_task_batch *batch = bio_task_batch_of(0);

	/* Longer than it gathers: it sleeps until it is woken. */
	msleep(50);
	KUNIT_ASSERT_EQ(test, READ_ONCE(batch->state), BIO_TASK_IDLE);
	worker = batch->task;
	KUNIT_ASSERT_NOT_NULL(test, worker);
	WRITE_ONCE(batch->task, NULL);

	check_cpu(test, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&tst.by_workqueue), NR_BIOS);
	give_worker_back();
	check_cpu(test, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&tst.by_workqueue), 0);
}

/* On CPU 0 with interrupts off. */
static void finish_one(void *unused)
{
	struct bio *bio = &tst.bios[tst.queued].bio;

	WRITE_ONCE(tst.queued, tst.queued + 1);
	bio_endio(bio);
}

/* Bios that gather wake nobody, until there is one more than a run completes. */
static void bio_task_gather_wakes(struct kunit *test)
{
	struct bio_task_batch *batch = bio_task_batch_of(0);
	bool woken;
	int i;

	start_round();
	/* Longer than it gathers: it sleeps, and no timer wakes it. */
	msleep(50);
	KUNIT_ASSERT_EQ(test, READ_ONCE(batch->state), BIO_TASK_IDLE);
	WRITE_ONCE(batch->state, BIO_TASK_GATHER);

	for (i = 0; i < BUDGET; i++)
		smp_call_function_single(0, finish_one, NULL, true);
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&tst.ended), 0);

	smp_call_function_single(0, finish_one, NULL, true);
	woken = wait_for(tst.queued);
	WRITE_ONCE(batch->state, BIO_TASK_IDLE);
	/* Else these bios would stay, and other tests would fail for them. */
	wake_up_process(batch->task);
	KUNIT_EXPECT_TRUE(test, woken);
	check_round(test);
}

/*
 * When a budget and one more finished during a run, the last of them, and
 * whether that was completed before the next jiffy.
 */
static unsigned long burst_jiffy;
static int burst_last;
static bool burst_at_once;

static void burst_end_io(struct bio *bio)
{
	struct fake_bio *fake = container_of(bio, struct fake_bio, bio);
	int i;

	if (!burst_last &&
	    READ_ONCE(bio_task_batch_of(0)->state) == BIO_TASK_GATHER) {
		burst_jiffy = jiffies;
		local_irq_disable();
		for (i = 0; i < BUDGET + 1; i++)
			finish_one(NULL);
		WRITE_ONCE(burst_last, tst.queued - 1);
		local_irq_enable();
	} else if (burst_last && fake->seq == burst_last) {
		burst_at_once = !time_after(jiffies, burst_jiffy);
	}
	atomic_inc(&tst.ended);
	wake_up(&tst.wait);
}

/*
 * Nor does a worker gather that is awake when there are so many: nobody wakes
 * it again. A jiffy may end by chance, but not in each of many rounds.
 */
static void bio_task_gather_full(struct kunit *test)
{
	int round, i;

	burst_at_once = false;
	for (round = 0; round < NR_ROUNDS && !burst_at_once; round++) {
		start_round();
		for (i = 0; i < NR_BIOS; i++)
			tst.bios[i].bio.bi_end_io = burst_end_io;
		burst_last = 0;
		/* Few at a time: what a run leaves is run with all that came. */
		for (i = 0; i < NR_BIOS / BURST / 2 && !READ_ONCE(burst_last); i++) {
			smp_call_function_single(0, finish_bios, NULL, true);
			KUNIT_ASSERT_TRUE(test, wait_for(tst.queued));
		}
		KUNIT_ASSERT_NE(test, READ_ONCE(burst_last), 0);
		KUNIT_ASSERT_TRUE(test, wait_for(tst.queued));
	}
	KUNIT_EXPECT_TRUE(test, burst_at_once);
}
#else
static void give_worker_back(void)
{
}

static void bio_task_gather_wakes(struct kunit *test)
{
	kunit_skip(test, "upstream lets no bios gather");
}

static void bio_task_gather_full(struct kunit *test)
{
	kunit_skip(test, "upstream lets no bios gather");
}

static void bio_task_no_worker(struct kunit *test)
{
	kunit_skip(test, "upstream has no worker of its own");
}
#endif

/* What one slow device and another have in fairness. */
static struct block_device *bdevs[2];
static int ended_of[2];
/* For each bio of the other device, how many of the slow one ended before. */
static int ended_before[2];

static void fair_end_io(struct bio *bio)
{
	int dev = bio->bi_bdev == bdevs[1];

	if (dev)
		ended_before[ended_of[1]] = ended_of[0];
	else
		usleep_range(20, 50);
	WRITE_ONCE(ended_of[dev], ended_of[dev] + 1);
	atomic_inc(&tst.ended);
	wake_up(&tst.wait);
}

/* Hard interrupt context. */
static void finish_slow_then_other(void *unused)
{
	int i;

	for (i = 0; i < 10 * BUDGET + 1; i++) {
		struct bio *bio = &tst.bios[tst.queued].bio;

		bio->bi_end_io = fair_end_io;
		bio->bi_bdev = bdevs[i == 10 * BUDGET];
		WRITE_ONCE(tst.queued, tst.queued + 1);
		bio_endio(bio);
	}
}

/*
 * A device with many bios, whose callbacks sleep, delays the bio of another by
 * no more than a run: also one that comes in the middle of it.
 */
static void bio_task_fairness(struct kunit *test)
{
	int i;

	for (i = 0; i < 2; i++) {
		bdevs[i] = kunit_kzalloc(test, sizeof(*bdevs[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, bdevs[i]);
		ended_of[i] = 0;
	}
	start_round();

	KUNIT_ASSERT_EQ(test, 0, smp_call_function_single(0, finish_slow_then_other,
							  NULL, true));
	KUNIT_ASSERT_TRUE(test, wait_event_timeout(tst.wait,
						   READ_ONCE(ended_of[0]) > 3 * BUDGET,
						   TIMEOUT));
	KUNIT_ASSERT_EQ(test, 0, smp_call_function_single(0, finish_slow_then_other,
							  NULL, true));
	i = READ_ONCE(ended_of[0]);
	KUNIT_ASSERT_TRUE(test, wait_for(tst.queued));
	KUNIT_EXPECT_LE(test, ended_before[0], BUDGET);
	KUNIT_EXPECT_LE(test, ended_before[1], i + BUDGET);
	KUNIT_EXPECT_EQ(test, ended_of[0], 20 * BUDGET);
	KUNIT_EXPECT_EQ(test, ended_of[1], 2);
}

#ifdef CONFIG_HOTPLUG_CPU
/* How many bios the last step has waited for. */
static int waited_for;
static bool stuck;
static bool ended_before_dead;

static int finish_on_the_way_down(unsigned int cpu)
{
	if (cpu != VICTIM)
		return 0;
	irq_work_queue(&tst.irq_work);
	irq_work_sync(&tst.irq_work);
	return 0;
}

/*
 * The last step before the CPU is taken down. It waits for all that finished
 * on the CPU, as blk_mq_hctx_notify_offline() waits for requests that may
 * depend on that. Who parks bios until the CPU is dead has none of them ended.
 */
static int wait_on_the_way_down(unsigned int cpu)
{
	if (cpu != VICTIM)
		return 0;
	finish_on_the_way_down(cpu);
	waited_for = READ_ONCE(tst.queued);
	if (!wait_for(waited_for))
		stuck = true;
	return 0;
}

/*
 * On another CPU, when the victim is dead. What the storm finished after the
 * last step is with a worker, and need not have ended.
 */
static int look_when_dead(unsigned int cpu)
{
	if (cpu == VICTIM)
		ended_before_dead = atomic_read(&tst.ended) >= waited_for;
	return 0;
}

/*
 * Steps of the way down, first to last. The fixed states belong to hardware
 * that a guest does not have; what counts is what they lie between.
 */
static struct {
	enum cpuhp_state state;
	const char *name;
	int (*teardown)(unsigned int cpu);
	int id;
} steps[] = {
	{ CPUHP_AP_ONLINE_DYN, "bio_task_test:first", finish_on_the_way_down },
	{ CPUHP_AP_PERF_CSKY_ONLINE, "bio_task_test:unbound",
	  finish_on_the_way_down },
	{ CPUHP_AP_ARM_MVEBU_SYNC_CLOCKS, "bio_task_test:before-blk-mq",
	  finish_on_the_way_down },
	{ CPUHP_AP_KVM_ONLINE, "bio_task_test:parked", finish_on_the_way_down },
	{ CPUHP_AP_HYPERV_ONLINE, "bio_task_test:last", wait_on_the_way_down },
	{ CPUHP_BP_PREPARE_DYN, "bio_task_test:dead", look_when_dead },
};

/* Interrupts that come in whenever the victim takes any, also on its way. */
static int storm(void *unused)
{
	while (!kthread_should_stop()) {
		smp_call_function_single(VICTIM, finish_bios, NULL, true);
		usleep_range(100, 200);
	}
	return 0;
}

static void remove_steps(void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i].id > 0)
			cpuhp_remove_state_nocalls(steps[i].id);
}

static void victim_online(void *unused)
{
	if (!cpu_online(VICTIM))
		add_cpu(VICTIM);
}

static void bio_task_hotunplug(struct kunit *test)
{
	struct task_struct *thread;
	int round, i;

	if (num_possible_cpus() < 2 || !get_cpu_device(VICTIM))
		kunit_skip(test, "needs 2 CPUs");
	if (!cpu_is_hotpluggable(VICTIM) || !cpu_online(VICTIM))
		kunit_skip(test, "CPU 1 must be online and hotpluggable");

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_steps,
							   NULL));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, victim_online,
							   NULL));
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		int ret = cpuhp_setup_state_nocalls(steps[i].state, steps[i].name,
						    NULL, steps[i].teardown);

		KUNIT_ASSERT_GE_MSG(test, ret, 0, "state %s", steps[i].name);
		steps[i].id = ret ?: steps[i].state;
	}

	stuck = false;
	for (round = 0; round < NR_ROUNDS; round++) {
		int before, after, ret;

		start_round();
		ended_before_dead = false;
		thread = kthread_run(storm, NULL, "bio_task_storm");
		KUNIT_ASSERT_FALSE(test, IS_ERR(thread));

		/* Some before, all steps, then some after it is back. */
		usleep_range(500, 1000);
		before = READ_ONCE(tst.queued);
		ret = remove_cpu(VICTIM);
		after = READ_ONCE(tst.queued);
		if (!ret)
			ret = add_cpu(VICTIM);
		usleep_range(500, 1000);
		kthread_stop(thread);

		KUNIT_ASSERT_EQ(test, ret, 0);
		KUNIT_ASSERT_GE(test, after - before, 5 * BURST);
		KUNIT_ASSERT_FALSE_MSG(test, stuck,
				       "round %d: the offline waits for bios that wait for it",
				       round);
		KUNIT_ASSERT_TRUE_MSG(test, ended_before_dead, "round %d", round);
		check_round(test);
	}
}
#else
static void bio_task_hotunplug(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_HOTPLUG_CPU");
}
#endif

static int bio_task_test_init(struct kunit *test)
{
	tst.bios = kunit_kcalloc(test, NR_BIOS, sizeof(*tst.bios), GFP_KERNEL);
	if (!tst.bios)
		return -ENOMEM;
	init_waitqueue_head(&tst.wait);
	tst.irq_work = IRQ_WORK_INIT_HARD(finish_bios_irq_work);
	return 0;
}

/* A failed assertion leaves the test early; bios must not outlive it. */
static void bio_task_test_exit(struct kunit *test)
{
	if (tst.bios)
		wait_for(tst.queued);
	give_worker_back();
}

static struct kunit_case bio_task_cases[] = {
	KUNIT_CASE(bio_task_context),
	KUNIT_CASE(bio_task_no_worker),
	KUNIT_CASE(bio_task_gather_wakes),
	KUNIT_CASE(bio_task_gather_full),
	KUNIT_CASE(bio_task_fairness),
	KUNIT_CASE_SLOW(bio_task_hotunplug),
	{}
};

static struct kunit_suite bio_task_suite = {
	.name = "bio_task",
	.init = bio_task_test_init,
	.exit = bio_task_test_exit,
	.test_cases = bio_task_cases,
};

kunit_test_suite(bio_task_suite);
