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
/* BUDGET of rust/kernel/dontcache/completion/backlog.rs. */
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
	atomic_t linked;
	wait_queue_head_t wait;
	struct irq_work irq_work;
};

/* Hotplug callbacks get a CPU number and nothing else. */
static struct bio_task_test tst;

static void fake_end_io(struct bio *bio)
{
	struct fake_bio *fake = container_of(bio, struct fake_bio, bio);

	if (bio->bi_next)
		atomic_inc(&tst.linked);
	if (!in_task() || irqs_disabled() ||
	    (IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible()))
		atomic_inc(&tst.bad_context);
	else if (fake->seq % 64 == 63)
		usleep_range(50, 100);

	if (atomic_inc_return(&fake->ended) != 1)
		atomic_inc(&tst.twice);
	if (atomic_inc_return(&tst.ended) != fake->seq + 1)
		atomic_inc(&tst.disordered);
	wake_up(&tst.wait);
}

/* Hard interrupt context, always on the same CPU. */
static void finish_bios_before(int end)
{
	int i;

	for (i = 0; i < BURST && tst.queued < end; i++) {
		struct bio *bio = &tst.bios[tst.queued].bio;

		WRITE_ONCE(tst.queued, tst.queued + 1);
		bio_endio(bio);
	}
}

static void finish_bios(void *unused)
{
	finish_bios_before(NR_BIOS);
}

static void finish_bios_irq_work(struct irq_work *work)
{
	finish_bios(NULL);
}

static bool wait_for(int nr)
{
	int ended;

	/* With timers of a jiffy it takes as long, but goes on. */
	do {
		ended = atomic_read(&tst.ended);
		if (wait_event_timeout(tst.wait, atomic_read(&tst.ended) >= nr, TIMEOUT))
			return true;
	} while (atomic_read(&tst.ended) != ended);
	return false;
}

static void start_round(void)
{
	int i;

	tst.queued = 0;
	atomic_set(&tst.ended, 0);
	atomic_set(&tst.twice, 0);
	atomic_set(&tst.disordered, 0);
	atomic_set(&tst.bad_context, 0);
	atomic_set(&tst.linked, 0);
	for (i = 0; i < NR_BIOS; i++) {
		struct fake_bio *fake = &tst.bios[i];

		bio_init(&fake->bio, NULL, NULL, 0, REQ_OP_WRITE);
		bio_set_flag(&fake->bio, BIO_COMPLETE_IN_TASK);
		fake->bio.bi_end_io = fake_end_io;
		/* As blk_update_request() leaves a bio that was merged. */
		fake->bio.bi_next = &tst.bios[(i + 1) % NR_BIOS].bio;
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
	KUNIT_ASSERT_EQ(test, atomic_read(&tst.linked), 0);
}

/* A run has a burst, or what the worker was too late for: as much as there is. */
static void check_cpu(struct kunit *test, int cpu, bool burst)
{
	int i;

	start_round();
	for (i = 0; i < NR_BIOS / BURST; i++) {
		KUNIT_ASSERT_EQ(test, 0,
				smp_call_function_single(cpu, finish_bios, NULL,
							 true));
		if (burst)
			KUNIT_ASSERT_TRUE(test, wait_for(tst.queued));
	}
	KUNIT_ASSERT_EQ(test, tst.queued, NR_BIOS);
	check_round(test);
}

/* Bios that finish in hard interrupts of each CPU end in tasks, in order. */
static void bio_task_context(struct kunit *test)
{
	int cpu;

	for_each_online_cpu(cpu) {
		check_cpu(test, cpu, true);
		check_cpu(test, cpu, false);
	}
}

/* What one slow device and another have in fairness. */
static const struct slow {
	const char *name;
	int us;
	int nr;
	/* Of the slow device before one of the other. */
	int most;
} slow_devices[] = {
	{ "many", 20, 10 * BUDGET, BUDGET },
	/* A run has its budget, and its time: two jiffies. */
	{ "slow", 10000, 40, 8 },
};

KUNIT_ARRAY_PARAM_DESC(slow, slow_devices, name);

static const struct slow *slow;
static struct block_device *bdevs[2];
static int ended_of[2];
/* For each bio of the other device, how many of the slow one ended before. */
static int ended_before[2];
/* And how many had when they finished. */
static int ended_then;

static void fair_end_io(struct bio *bio)
{
	int dev = bio->bi_bdev == bdevs[1];

	if (dev)
		ended_before[ended_of[1]] = ended_of[0];
	else
		usleep_range(slow->us, slow->us + 30);
	WRITE_ONCE(ended_of[dev], ended_of[dev] + 1);
	atomic_inc(&tst.ended);
	wake_up(&tst.wait);
}

/* Hard interrupt context. */
static void finish_slow_then_other(void *unused)
{
	int i;

	ended_then = READ_ONCE(ended_of[0]);
	for (i = 0; i < slow->nr + 1; i++) {
		struct bio *bio = &tst.bios[tst.queued].bio;

		bio->bi_end_io = fair_end_io;
		bio->bi_bdev = bdevs[i == slow->nr];
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
	slow = test->param_value;
	/* Some 64 bytes apart: two devices of one lane do not take turns. */
	bdevs[0] = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bdevs[0]);
	bdevs[1] = (void *)bdevs[0] + 64;
	ended_of[0] = 0;
	ended_of[1] = 0;
	start_round();

	KUNIT_ASSERT_EQ(test, 0, smp_call_function_single(0, finish_slow_then_other,
							  NULL, true));
	KUNIT_ASSERT_TRUE(test, wait_event_timeout(tst.wait,
						   READ_ONCE(ended_of[0]) > slow->nr / 3,
						   TIMEOUT));
	KUNIT_ASSERT_EQ(test, 0, smp_call_function_single(0, finish_slow_then_other,
							  NULL, true));
	KUNIT_ASSERT_TRUE(test, wait_for(tst.queued));
	KUNIT_EXPECT_LE(test, ended_before[0], slow->most);
	KUNIT_EXPECT_LE(test, ended_before[1], ended_then + slow->most);
	KUNIT_EXPECT_EQ(test, ended_of[0], 2 * slow->nr);
	KUNIT_EXPECT_EQ(test, ended_of[1], 2);
}

#ifdef CONFIG_HOTPLUG_CPU
/* How many bios the last step has waited for. */
static int waited_for;
static bool stuck;
static bool ended_before_dead;
/* The last step had no bio to wait for. */
static bool none_in_last;
/* The last step refuses: the CPU stays, and its worker may have been moved. */
static bool refused;

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
	waited_for = READ_ONCE(tst.queued);
	finish_on_the_way_down(cpu);
	none_in_last = READ_ONCE(tst.queued) == waited_for;
	waited_for = READ_ONCE(tst.queued);
	if (!wait_for(waited_for))
		stuck = true;
	return refused ? -EBUSY : 0;
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

/* Leaves some for the steps, however long they take. */
static void finish_bios_storm(void *unused)
{
	finish_bios_before(NR_BIOS - ARRAY_SIZE(steps) * BURST);
}

/* Interrupts that come in whenever the victim takes any, also on its way. */
static int storm(void *unused)
{
	while (!kthread_should_stop()) {
		smp_call_function_single(VICTIM, finish_bios_storm, NULL, true);
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
		refused = round % 4 == 3;
		ended_before_dead = refused;
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

		KUNIT_ASSERT_EQ(test, ret, refused ? -EBUSY : 0);
		KUNIT_ASSERT_GE(test, after - before, 5 * BURST);
		KUNIT_ASSERT_FALSE(test, none_in_last);
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
}

static struct kunit_case bio_task_cases[] = {
	KUNIT_CASE(bio_task_context),
	KUNIT_CASE_PARAM(bio_task_fairness, slow_gen_params),
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
