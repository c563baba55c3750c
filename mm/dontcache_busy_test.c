// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of folios of uncached writes that somebody else needs when their
 * writeback has ended: he has locked, dirtied, mapped, pinned or truncated one,
 * or uses its buffers. See mm/dontcache_test.c for the others.
 */

#include <linux/buffer_head.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include "dontcache_test.h"
#include "internal.h"

#define NR_RACES	20000
#define BUFFER_SIZE	512

/* Mapping a folio takes one; that it is not locked in memory is all that counts. */
static struct vm_area_struct fake_vma;

/* What is in the way of a folio, and when it comes and goes. */
struct obstacle {
	const char *name;
	/* Under writeback. */
	void (*before)(struct test_folio *tf);
	/* In bi_end_io, writeback has ended: it is dropped now or soon. */
	void (*after)(struct test_folio *tf);
	/* When it had all time to go. */
	void (*lift)(struct test_folio *tf);
	int nr_bios;
	/* Whether it stays until lifted, and then. */
	bool stays[2];
	bool stays_upstream[2];
	bool marked;
	int extra;
};

static void set_refuses(struct test_folio *tf)
{
	tf->refuses = true;
}

static void clear_refuses(struct test_folio *tf)
{
	WRITE_ONCE(tf->refuses, false);
}

static void dirty_folio(struct test_folio *tf)
{
	folio_lock(tf->folio);
	tf->hit = tf->folio->mapping;
	if (tf->hit)
		folio_mark_dirty(tf->folio);
	folio_unlock(tf->folio);
}

static void write_again(struct test_folio *tf)
{
	folio_lock(tf->folio);
	tf->hit = tf->folio->mapping;
	if (tf->hit)
		write_folio(tf);
	folio_unlock(tf->folio);
}

static void end_again(struct test_folio *tf)
{
	if (folio_test_writeback(tf->folio))
		folio_end_writeback(tf->folio);
}

static void write_and_end(struct test_folio *tf)
{
	write_again(tf);
	end_again(tf);
}

static void truncate_folio(struct test_folio *tf)
{
	loff_t pos = (loff_t)tf->index << PAGE_SHIFT;

	tf->hit = tf->folio->mapping;
	truncate_inode_pages_range(tf->inode->i_mapping, pos,
				   pos + folio_size(tf->folio) - 1);
}

static void map_folio(struct test_folio *tf)
{
	folio_get(tf->folio);
	folio_add_file_rmap_pte(tf->folio, &tf->folio->page, &fake_vma);
}

static void unmap_folio(struct test_folio *tf)
{
	folio_remove_rmap_pte(tf->folio, &tf->folio->page, &fake_vma);
	tf->extra = 0;
	folio_put(tf->folio);
}

static void take_pin(struct test_folio *tf)
{
	folio_ref_add(tf->folio, GUP_PIN_COUNTING_BIAS);
}

static void drop_pin(struct test_folio *tf)
{
	tf->extra = 0;
	folio_ref_sub(tf->folio, GUP_PIN_COUNTING_BIAS);
}

static const struct obstacle obstacles[] = {
	{ "release refused", .before = set_refuses, .lift = clear_refuses,
	  .stays = { true, false }, .stays_upstream = { true, true } },
	{ "locked", .before = lock_folio, .lift = unlock_folio, .marked = true,
	  .stays = { true, false }, .stays_upstream = { true, true } },
	{ "dirtied under writeback", .before = dirty_folio, .lift = write_and_end,
	  .marked = true, .stays = { true, false },
	  .stays_upstream = { true, false } },
	{ "dirtied after", .after = dirty_folio, .lift = write_and_end,
	  .marked = true, .stays = { true, false } },
	{ "under writeback again", .after = write_again, .lift = end_again,
	  .marked = true, .stays = { true, false } },
	{ "ended twice", .after = write_again, .nr_bios = 2, },
	{ "truncated", .after = truncate_folio },
	{ "mapped", .before = map_folio, .lift = unmap_folio, .extra = 1,
	  .stays = { true, true }, .stays_upstream = { true, true } },
	{ "pinned", .before = take_pin, .lift = drop_pin,
	  .extra = GUP_PIN_COUNTING_BIAS, .stays = { true, true } },
};

KUNIT_ARRAY_PARAM_DESC(obstacle, obstacles, name);

static const struct obstacle *obstacle;

static bool in_the_way(struct test_folio *tf)
{
	return (tf - tst.folios) % 2;
}

/* The first time only. */
static void after_if_in_the_way(struct test_folio *tf)
{
	if (in_the_way(tf) && !tf->hit)
		obstacle->after(tf);
}

static void obstruct(struct kunit *test, enum context context)
{
	const bool *stays = RUST ? obstacle->stays : obstacle->stays_upstream;
	struct test_folio *tf;
	int i, hits = 0;

	add_folios(test, 8, 1, false);
	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++) {
		if (!in_the_way(tf))
			continue;
		tf->stays = stays[0];
		tf->marked = obstacle->marked;
		tf->extra = obstacle->extra;
		if (obstacle->before)
			obstacle->before(tf);
	}
	for (i = 0; i < obstacle->nr_bios; i++)
		add_bio(0, tst.nr_folios);
	if (obstacle->after)
		tst.after = after_if_in_the_way;
	finish(test, context);
	tst.after = NULL;

	if (obstacle->after)
		for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++) {
			tf->stays &= tf->hit;
			hits += tf->hit;
		}
	/* Who drops a folio at the end of its writeback leaves nothing for after. */
	if (RUST && context == BIO_IRQ && obstacle->after)
		KUNIT_EXPECT_GT_MSG(test, hits, 0, "nothing came in the way");

	check(test, context == IRQ ? RETRIED : SOON, obstacle->name);
	if (stays[1]) {
		/* Nor later. */
		msleep(jiffies_to_msecs(RETRIED));
		check(test, 0, obstacle->name);
	}
	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++)
		if (in_the_way(tf)) {
			if (obstacle->lift)
				obstacle->lift(tf);
			tf->stays &= stays[1];
		}
	check(test, RETRIED, "lifted");
	clean_up(test);
}

/*
 * A folio that somebody else needs stays, without a reference that would be in
 * his way; when he is done with it, it goes within a second.
 */
static void folios_obstructed(struct kunit *test)
{
	enum context context;

	obstacle = test->param_value;
	for (context = 0; context < NR_CONTEXTS; context++)
		if (looked_at(context) && !(obstacle->after && context == IRQ))
			obstruct(test, context);
}

/* A folio that has taken the place of one that is to be tried again stays. */
static void folios_replaced(struct kunit *test)
{
	struct test_folio *tf = tst.folios;

	add_folios(test, 1, 1, false);
	tf->stays = true;
	lock_folio(tf);
	finish(test, BIO_IRQ);
	check(test, SOON, "locked");

	unlock_folio(tf);
	truncate_folio(tf);
	tf->stays = false;
	check(test, RETRIED, "truncated");
	folio_put(tf->folio);
	tst.nr_folios = 0;
	add_folio(test, tst.inodes[0], 0);
	folio_clear_dropbehind(tf->folio);
	folio_unlock(tf->folio);
	lru_add_drain_all();
	tf->stays = true;
	msleep(jiffies_to_msecs(RETRIED));
	check(test, 0, "replaced");
	clean_up(test);
}

#ifdef CONFIG_MIGRATION
/* As migrate_folio_move() does. */
static int move_folio(struct test_folio *tf)
{
	struct folio *src = tf->folio, *dst;
	int ret;

	if (!folio_isolate_lru(src))
		return -EAGAIN;
	/* There may be one reference, that of the isolation. */
	folio_put(src);
	dst = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 0);
	folio_lock(src);
	folio_lock(dst);
	ret = filemap_migrate_folio(tf->inode->i_mapping, dst, src, MIGRATE_SYNC);
	if (!ret) {
		src->mapping = NULL;
		folio_add_lru(dst);
		tf->folio = dst;
	}
	folio_unlock(src);
	folio_unlock(dst);
	if (ret) {
		folio_get(src);
		folio_putback_lru(src);
	}
	folio_put(ret ? dst : src);
	return ret;
}

/* A folio that is moved while it waits to be tried again goes from its new place. */
static void folios_moved(struct kunit *test)
{
	unsigned long end = jiffies + TIMEOUT;
	struct test_folio *tf;
	int ret;

	add_folios(test, 8, 1, false);
	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++)
		set_refuses(tf);
	finish(test, BIO_IRQ);
	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++) {
		/* Who drops it may have a reference for a moment. */
		while ((ret = move_folio(tf)) == -EAGAIN && time_before(jiffies, end))
			lru_add_drain_all();
		KUNIT_EXPECT_EQ(test, ret, 0);
		clear_refuses(tf);
		tf->stays = !RUST;
	}
	/* Its batches have references. */
	lru_add_drain_all();
	check(test, RETRIED, "moved");
	clean_up(test);
}
#else
static void folios_moved(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MIGRATION");
}
#endif

#ifdef CONFIG_BUFFER_HEAD
static const struct address_space_operations buffer_aops = {
	.dirty_folio = block_dirty_folio,
	.invalidate_folio = block_invalidate_folio,
	.free_folio = test_free_folio,
};

static const struct {
	void (*use)(struct buffer_head *bh);
	void (*end)(struct buffer_head *bh);
} uses[] = {
	{ },
	{ get_bh, put_bh },
	{ lock_buffer, unlock_buffer },
	/* Without its folio, as when it is the journal's. */
	{ set_buffer_dirty, clear_buffer_dirty },
};

/* Folios stay while a buffer of theirs is used, and keep all of them. */
static void folios_buffers(struct kunit *test)
{
	struct buffer_head *heads[8], *bh;
	enum context context;
	int i, nr;

	for (context = 0; context < NR_CONTEXTS && looked_at(context); context++) {
		add_inode(test, 0, &buffer_aops);
		for (i = 0; i < ARRAY_SIZE(heads); i++) {
			struct test_folio *tf = add_folio(test, tst.inodes[0], 0);
			int use = i % ARRAY_SIZE(uses);

			write_folio(tf);
			heads[i] = create_empty_buffers(tf->folio, BUFFER_SIZE, 0);
			tf->stays = use;
			/* Neither the first of them nor the last. */
			if (use)
				uses[use].use(heads[i]->b_this_page);
			folio_unlock(tf->folio);
		}
		lru_add_drain_all();
		finish(test, context);
		check(test, context == IRQ ? RETRIED : SOON, "buffers in use");

		for (i = 0; i < ARRAY_SIZE(heads); i++) {
			struct test_folio *tf = &tst.folios[i];

			if (!tf->stays || !tf->folio->mapping)
				continue;
			KUNIT_ASSERT_PTR_EQ(test, heads[i], folio_buffers(tf->folio));
			for (bh = heads[i]->b_this_page, nr = 1; bh != heads[i]; nr++)
				bh = bh->b_this_page;
			KUNIT_EXPECT_EQ(test, nr, PAGE_SIZE / BUFFER_SIZE);
			uses[i % ARRAY_SIZE(uses)].end(heads[i]->b_this_page);
			tf->stays = !RUST;
		}
		check(test, RETRIED, "buffers no longer in use");
		clean_up(test);
	}
}
#else
static void folios_buffers(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_BUFFER_HEAD");
}
#endif

/* The round that the dirtier may dirty the folio in, and has. */
static int dirty_round, dirtied_round;

static int dirtier(void *folio)
{
	int round = 0;

	while (!kthread_should_stop()) {
		if (READ_ONCE(dirty_round) == round) {
			cond_resched();
			continue;
		}
		round = READ_ONCE(dirty_round);
		udelay(round % 4);
		/* As zap_vma() does, without the folio's lock. */
		folio_mark_dirty(folio);
		/* Pairs with folios_mapped_dirtied(): it is dirty before that is said. */
		smp_store_release(&dirtied_round, round);
	}
	return 0;
}

/* A mapped folio that is dirtied while it is left is counted as it is marked. */
static void folios_mapped_dirtied(struct kunit *test)
{
	struct task_struct *task;
	struct test_folio *tf = tst.folios;
	int round;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs 2 CPUs");
	if (!RUST)
		kunit_skip(test, "upstream loses count");
	add_folios(test, 1, 1, false);
	map_folio(tf);
	finish(test, TASK);
	dirty_round = 0;
	dirtied_round = 0;
	task = kthread_run(dirtier, tf->folio, "dontcache_dirtier");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (round = 1; round <= NR_RACES; round++) {
		folio_lock(tf->folio);
		folio_set_dropbehind(tf->folio);
		write_folio(tf);
		folio_unlock(tf->folio);
		WRITE_ONCE(dirty_round, round);
		ndelay(round % 32 * 100);
		folio_end_writeback(tf->folio);
		/* Pairs with dirtier(). */
		while (smp_load_acquire(&dirtied_round) != round)
			cond_resched();
		folio_lock(tf->folio);
		folio_cancel_dirty(tf->folio);
		/* Only what is new gets the mark, and no tag of that is set. */
		dontcache_unmark(tf->inode->i_mapping, tf->folio, true);
		xa_lock_irq(&tf->inode->i_data.i_pages);
		__xa_clear_mark(&tf->inode->i_data.i_pages, tf->index, PAGECACHE_TAG_DIRTY);
		xa_unlock_irq(&tf->inode->i_data.i_pages);
		folio_unlock(tf->folio);
	}
	kthread_stop(task);
	unmap_folio(tf);
	clean_up(test);
}

static struct kunit_case folios_cases[] = {
	KUNIT_CASE_PARAM(folios_obstructed, obstacle_gen_params),
	KUNIT_CASE_SLOW(folios_replaced),
	KUNIT_CASE_SLOW(folios_moved),
	KUNIT_CASE_SLOW(folios_buffers),
	KUNIT_CASE_SLOW(folios_mapped_dirtied),
	{}
};

static struct kunit_suite folios_suite = {
	.name = "dontcache_folios_busy",
	.suite_init = test_suite_init,
	.suite_exit = test_suite_exit,
	.init = test_init,
	.exit = test_exit,
	.test_cases = folios_cases,
};

kunit_test_suite(folios_suite);
