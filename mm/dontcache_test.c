// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what becomes of the folios of uncached writes when their
 * writeback has ended, through what block drivers and filesystems see of it:
 * bio_endio(), folio_end_writeback() and address_space_operations. So they run
 * on the C code as well, which leaves for good what it cannot drop at once.
 */

#include "dontcache_test.h"

/* More than are dropped together, so that batches end in the middle of a bio. */
#define NR_BATCH	33

static bool refuse(struct kunit *test, enum context context, int nr, u64 mask)
{
	int i;

	add_folios(test, nr, 1, false);
	for (i = 0; i < nr; i++) {
		tst.folios[i].refuses = mask & BIT_ULL(i);
		tst.folios[i].stays = tst.folios[i].refuses;
	}
	finish(test, context);
	if (!check(test, context == IRQ ? RETRIED : SOON, "refused"))
		kunit_info(test, "%d folios, refused are %#llx", nr, mask);
	return clean_up(test) && test->status != KUNIT_FAILURE;
}

/*
 * Of folios that end together, those whose ->release_folio() says no stay, and
 * all others go: whatever their number and places are.
 */
static void folios_refused(struct kunit *test)
{
	int nr, a, b;

	for (nr = 1; nr <= NR_BATCH; nr++)
		for (a = 0; a < nr; a++)
			for (b = a; b < (nr <= 8 ? nr : a + 1); b++)
				if (!refuse(test, BIO_IRQ, nr,
					    BIT_ULL(a) | BIT_ULL(b)))
					return;
}

static void folios_refused_patterns(struct kunit *test)
{
	enum context context;
	int nr, i;

	for (context = 0; context < NR_CONTEXTS; context++) {
		if (!looked_at(context))
			continue;
		/* There, each round takes a quarter of a second. */
		for (nr = context == IRQ ? NR_BATCH - 2 : 1; nr <= NR_BATCH; nr++) {
			u64 all = GENMASK_ULL(nr - 1, 0);
			u64 masks[] = {
				0, all, BIT_ULL(0) | BIT_ULL(nr - 1),
				all & 0x5555555555555555, all & 0xaaaaaaaaaaaaaaaa,
			};

			for (i = 0; i < ARRAY_SIZE(masks); i++)
				if (!refuse(test, context, nr, masks[i]))
					return;
		}
	}
}

struct layout {
	const char *name;
	int nr_inodes;
	bool large;
};

static const struct layout layouts[] = {
	{ "one inode", 1, false },
	{ "two inodes", 2, false },
	{ "three inodes", 3, false },
	{ "large folios", 1, true },
	{ "large folios, three inodes", 3, true },
};

KUNIT_ARRAY_PARAM_DESC(layout, layouts, name);

/* How many folios could not be dropped at once so far. */
static unsigned long retries(void)
{
	unsigned long retries = 0;
#if defined(CONFIG_DONTCACHE_RUST) && defined(CONFIG_VM_EVENT_COUNTERS)
	static unsigned long events[NR_VM_EVENT_ITEMS];

	all_vm_events(events);
	retries = events[DONTCACHE_RETRY];
#endif
	return retries;
}

/* Folios of several inodes and sizes end together. */
static void folios_mixed(struct kunit *test)
{
	const struct layout *layout = test->param_value;
	enum context context;
	int i, every;

	if (layout->large && !IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "needs CONFIG_TRANSPARENT_HUGEPAGE");
	/* A retry of an earlier test's may lock what has its page frame now. */
	msleep(jiffies_to_msecs(RETRIED));
	for (every = 0; every <= 5; every += 5)
		for (context = 0; context < NR_CONTEXTS && looked_at(context); context++) {
			unsigned long before = retries();

			add_folios(test, 70, layout->nr_inodes, layout->large);
			for (i = 2; i < tst.nr_folios && every; i += every) {
				tst.folios[i].refuses = true;
				tst.folios[i].stays = true;
			}
			finish(test, context);
			check(test, context == IRQ ? RETRIED : SOON, layout->name);
			/* Nor does one wait for those of another inode. */
			if (!every && context != IRQ)
				KUNIT_EXPECT_EQ(test, retries(), before);
			clean_up(test);
		}
}

/*
 * More folios than anybody keeps a list of: none is lost track of in a way that
 * leaves a reference.
 */
static void folios_many(struct kunit *test)
{
	static const enum context contexts[] = { BIO_IRQ, IRQ };
	int i, round, dropped;

	for (round = 0; round < ARRAY_SIZE(contexts); round++) {
		add_folios(test, NR_FOLIOS, 1, false);
		for (i = 0; i < NR_FOLIOS; i++) {
			lock_folio(&tst.folios[i]);
			tst.folios[i].stays = true;
		}
		finish(test, contexts[round]);
		check(test, SOON, "locked");
		for (i = 0; i < NR_FOLIOS; i++)
			unlock_folio(&tst.folios[i]);
		msleep(jiffies_to_msecs(RETRIED));
		for (i = 0, dropped = 0; i < NR_FOLIOS; i++) {
			tst.folios[i].stays = tst.folios[i].folio->mapping;
			dropped += !tst.folios[i].stays;
		}
		kunit_info(test, "%s: %d of %d dropped",
			   context_names[contexts[round]], dropped, NR_FOLIOS);
		check(test, 0, "unlocked");
		clean_up(test);
	}
}

/* Folios whose writeback ends in an interrupt go within a second. */
static void folios_interrupt(struct kunit *test)
{
	int i;

	add_folios(test, 100, 1, false);
	/* Upstream leaves them. */
	for (i = 0; i < tst.nr_folios; i++)
		tst.folios[i].stays = !RUST;
	finish(test, IRQ);
	msleep(jiffies_to_msecs(RETRIED));
	check(test, 0, "interrupt");
	clean_up(test);
}

/*
 * What is given up is no longer marked. But not what its filesystem will say
 * once more of that its writeback has ended.
 */
static void folios_given_up(struct kunit *test)
{
	unsigned long end = jiffies + TIMEOUT;
	int i;

	if (!RUST)
		kunit_skip(test, "upstream tries once, and leaves the mark");
	add_folios(test, 2, 1, false);
	tst.folios[1].uncommitted = true;
	for (i = 0; i < tst.nr_folios; i++) {
		tst.folios[i].refuses = true;
		tst.folios[i].stays = true;
	}
	finish(test, BIO_IRQ);
	while (folio_test_dropbehind(tst.folios[0].folio) && time_before(jiffies, end))
		usleep_range(10000, 20000);
	KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(tst.folios[0].folio));
	/* The other may be one round behind. */
	msleep(jiffies_to_msecs(HZ / 2));
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(tst.folios[1].folio));
	check(test, SOON, "given up");
	clean_up(test);
}

/*
 * What is new waits in a batch of some CPU's until that is full, and is not on
 * the LRU meanwhile. It goes as well when its turn has come late.
 */
static void folios_unlisted(struct kunit *test)
{
	int i;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "its interrupts are threads, which drop at once");
	add_inode(test, 0, &test_aops);
	for (i = 0; i < 3; i++) {
		struct test_folio *tf = add_folio(test, tst.inodes[0], 0);

		write_folio(tf);
		folio_unlock(tf->folio);
	}
	for (i = 0; i < tst.nr_folios; i++)
		/* Isolated CPUs are not asked for their batches. */
		if (!RUST || housekeeping_enabled(HK_TYPE_DOMAIN) ||
		    housekeeping_enabled(HK_TYPE_KERNEL_NOISE)) {
			tst.folios[i].stays = true;
			tst.folios[i].extra = !folio_test_lru(tst.folios[i].folio);
		}
	finish(test, IRQ);
	check(test, RETRIED, "not on the LRU");
	lru_add_drain_all();
	for (i = 0; i < tst.nr_folios; i++)
		tst.folios[i].extra = 0;
	clean_up(test);
}

/*
 * Folios of a bio go while bios that came after it sleep: in the same run of a
 * worker when that is over, and before it begins another.
 */
static void folios_callback_sleeps(struct kunit *test)
{
	static const int slow[] = { 1, 200 };
	int i, round;

	for (round = 0; round < ARRAY_SIZE(slow); round++) {
		add_folios(test, 5, 1, false);
		add_bio(0, tst.nr_folios);
		for (i = 1; i < NR_BIOS; i++)
			add_bio(0, 0);
		tst.slow_bio = slow[round];
		tst.looked = false;
		start(BIO_IRQ);
		if (tst.slow_bio > 1) {
			KUNIT_EXPECT_TRUE(test, wait_ended(tst.slow_bio));
			check(test, SOON, "while it sleeps");
		} else {
			msleep(100);
		}
		WRITE_ONCE(tst.looked, true);
		wake_up(&tst.wait);
		KUNIT_ASSERT_TRUE(test, wait_ended(NR_BIOS));
		check(test, SOON, "when it has slept");
		clean_up(test);
	}
}

static struct kunit_case folios_cases[] = {
	KUNIT_CASE(folios_refused),
	KUNIT_CASE_SLOW(folios_refused_patterns),
	KUNIT_CASE_PARAM(folios_mixed, layout_gen_params),
	KUNIT_CASE_SLOW(folios_many),
	KUNIT_CASE_SLOW(folios_interrupt),
	KUNIT_CASE_SLOW(folios_given_up),
	KUNIT_CASE_SLOW(folios_unlisted),
	KUNIT_CASE(folios_callback_sleeps),
	{}
};

static struct kunit_suite folios_suite = {
	.name = "dontcache_folios",
	.suite_init = test_suite_init,
	.suite_exit = test_suite_exit,
	.init = test_init,
	.exit = test_exit,
	.test_cases = folios_cases,
};

kunit_test_suite(folios_suite);
