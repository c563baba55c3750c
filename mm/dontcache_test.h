/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What mm/dontcache_test.c and mm/dontcache_busy_test.c stand on: a filesystem whose inodes have
 * folios and no data, bios that end their writeback in any context, and a look
 * at what became of them. All of it belongs to the one test that runs.
 */
#ifndef _MM_DONTCACHE_TEST_H
#define _MM_DONTCACHE_TEST_H

#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/bio.h>
#include <linux/delay.h>
#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/isolation.h>
#include <linux/swap.h>
#include <linux/wait.h>

#define RUST		IS_ENABLED(CONFIG_DONTCACHE_RUST)
#define NR_FOLIOS	2048
#define NR_INODES	3
#define NR_BIOS		256
/* Of large folios. Folio i is at index i << ORDER, so it has room anywhere. */
#define ORDER		2
#define TIMEOUT		(10 * HZ)
/* The last retry is a second after the end of writeback. */
#define RETRIED		(HZ + HZ / 2)
/* Before that: whoever holds a reference until the last retry is seen. */
#define SOON		(HZ * 3 / 4)

/* In what context writeback ends. */
enum context {
	BIO_IRQ,	/* by a bio that finishes in a hard interrupt */
	BIO_TASK,	/* by a bio that finishes in a task */
	TASK,		/* in a task, without a bio */
	IRQ,		/* in a hard interrupt, without a bio */
	NR_CONTEXTS,
};

static const char * const context_names[] = {
	"bio, irq", "bio, task", "task", "irq"
};

struct test_folio {
	/* With a reference of the test's own. */
	struct folio *folio;
	struct inode *inode;
	pgoff_t index;
	/* How often ->free_folio() and ->release_folio() were called. */
	atomic_t freed;
	atomic_t asked;
	/* ->release_folio() says no. */
	bool refuses;
	/* ->is_dirty_writeback() says that there is more to come. */
	bool uncommitted;
	/* What is expected: in the page cache, locked, marked as dropbehind. */
	bool stays;
	bool locked;
	bool marked;
	/* It was still cached when obstacle::after came. */
	bool hit;
	/* References that the test has beyond its own one. */
	int extra;
};

/* A bio that ends the writeback of folios. */
struct fake_bio {
	struct bio bio;
	int first;
	int nr;
};

/* What is below @bios is cleared for each test; a worker may still know the rest. */
struct folio_test {
	struct test_folio folios[NR_FOLIOS];
	struct fake_bio bios[NR_BIOS];
	int nr_folios;
	int nr_bios;
	struct inode *inodes[NR_INODES];
	enum context context;
	/* Called by each bio for each of its folios, when all have ended. */
	void (*after)(struct test_folio *tf);
	/* The bio that waits until the test has looked, none if 0. */
	int slow_bio;
	bool looked;
	atomic_t ended;
	wait_queue_head_t wait;
	struct irq_work irq_work;
};

static struct folio_test tst;
static struct vfsmount *mnt;
static atomic_t evicted;

static struct test_folio *test_folio_of(struct folio *folio)
{
	return &tst.folios[folio->index >> ORDER];
}

static bool test_release_folio(struct folio *folio, gfp_t gfp)
{
	struct test_folio *tf = test_folio_of(folio);

	atomic_inc(&tf->asked);
	if (READ_ONCE(tf->refuses))
		return false;
	folio_detach_private(folio);
	return true;
}

static void test_is_dirty_writeback(struct folio *folio, bool *dirty, bool *writeback)
{
	*dirty = READ_ONCE(test_folio_of(folio)->uncommitted);
}

static void test_invalidate_folio(struct folio *folio, size_t off, size_t len)
{
	folio_detach_private(folio);
}

static void test_free_folio(struct folio *folio)
{
	atomic_inc(&test_folio_of(folio)->freed);
}

static const struct address_space_operations test_aops = {
	.dirty_folio = filemap_dirty_folio,
	.release_folio = test_release_folio,
	.invalidate_folio = test_invalidate_folio,
	.free_folio = test_free_folio,
	.is_dirty_writeback = test_is_dirty_writeback,
};

static void test_evict_inode(struct inode *inode)
{
	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	atomic_inc(&evicted);
}

static const struct super_operations test_super_ops = {
	.evict_inode = test_evict_inode,
	.statfs = simple_statfs,
};

static int test_init_fs_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, 0x646f6e74);

	if (!ctx)
		return -ENOMEM;
	ctx->ops = &test_super_ops;
	return 0;
}

static struct file_system_type test_fs = {
	.name = "dontcache_test",
	.init_fs_context = test_init_fs_context,
	.kill_sb = kill_anon_super,
};

static s64 wb_stat_exact(enum wb_stat_item item)
{
	return percpu_counter_sum(&mnt->mnt_sb->s_bdi->wb.stat[item]);
}

/* Brings a folio under writeback, as an uncached write and the flusher do. */
static void write_folio(struct test_folio *tf)
{
	folio_mark_dirty(tf->folio);
	folio_clear_dirty_for_io(tf->folio);
	folio_start_writeback(tf->folio);
}

static void add_inode(struct kunit *test, int nr,
		      const struct address_space_operations *aops)
{
	struct inode *inode = new_inode(mnt->mnt_sb);

	KUNIT_ASSERT_NOT_NULL(test, inode);
	inode->i_mode = S_IFREG;
	inode->i_mapping->a_ops = aops;
	mapping_set_large_folios(inode->i_mapping);
	i_size_write(inode, MAX_LFS_FILESIZE);
	tst.inodes[nr] = inode;
}

/* Adds the next folio, locked. */
static struct test_folio *add_folio(struct kunit *test, struct inode *inode,
				    unsigned int order)
{
	struct test_folio *tf = &tst.folios[tst.nr_folios];
	struct folio *folio = filemap_alloc_folio(GFP_KERNEL, order, NULL);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	*tf = (struct test_folio){
		.folio = folio,
		.inode = inode,
		.index = tst.nr_folios << ORDER,
	};
	__folio_set_dropbehind(folio);
	KUNIT_ASSERT_EQ(test, 0, filemap_add_folio(inode->i_mapping, folio,
						   tf->index, GFP_KERNEL));
	tst.nr_folios++;
	folio_mark_uptodate(folio);
	if (inode->i_mapping->a_ops->release_folio)
		folio_attach_private(folio, tf);
	return tf;
}

/* Adds folios under writeback; those of several inodes take turns. */
static void add_folios(struct kunit *test, int nr, int nr_inodes, bool large)
{
	int i;

	for (i = 0; i < nr_inodes; i++)
		add_inode(test, i, &test_aops);
	for (i = 0; i < nr; i++) {
		struct test_folio *tf;

		tf = add_folio(test, tst.inodes[i % nr_inodes],
			       large && i % 4 == 1 ? ORDER : 0);
		write_folio(tf);
		folio_unlock(tf->folio);
	}
	/* Its batches have references. */
	lru_add_drain_all();
}

static void fake_end_io(struct bio *bio)
{
	struct fake_bio *fake = container_of(bio, struct fake_bio, bio);
	struct test_folio *tf;

	for (tf = &tst.folios[fake->first];
	     tf < &tst.folios[fake->first + fake->nr]; tf++)
		if (folio_test_writeback(tf->folio))
			folio_end_writeback(tf->folio);
	if (tst.after)
		for (tf = &tst.folios[fake->first];
		     tf < &tst.folios[fake->first + fake->nr]; tf++)
			tst.after(tf);
	if (tst.slow_bio && fake == &tst.bios[tst.slow_bio])
		wait_event_timeout(tst.wait, READ_ONCE(tst.looked), TIMEOUT);
	atomic_inc(&tst.ended);
	wake_up(&tst.wait);
}

static void add_bio(int first, int nr)
{
	struct fake_bio *fake = &tst.bios[tst.nr_bios++];

	bio_init(&fake->bio, NULL, NULL, 0, REQ_OP_WRITE);
	bio_set_flag(&fake->bio, BIO_COMPLETE_IN_TASK);
	fake->bio.bi_end_io = fake_end_io;
	fake->first = first;
	fake->nr = nr;
}

static void finish_bios(struct irq_work *work)
{
	int i;

	for (i = 0; i < tst.nr_bios; i++) {
		if (tst.context == BIO_IRQ || tst.context == BIO_TASK)
			bio_endio(&tst.bios[i].bio);
		else
			fake_end_io(&tst.bios[i].bio);
	}
}

static void start(enum context context)
{
	atomic_set(&tst.ended, 0);
	tst.context = context;
	if (context == BIO_IRQ || context == IRQ) {
		irq_work_queue(&tst.irq_work);
		irq_work_sync(&tst.irq_work);
	} else {
		finish_bios(NULL);
	}
}

static bool wait_ended(int nr)
{
	return wait_event_timeout(tst.wait, atomic_read(&tst.ended) >= nr,
				  TIMEOUT);
}

/* All in one bio, if no other was added. */
static void finish(struct kunit *test, enum context context)
{
	if (!tst.nr_bios)
		add_bio(0, tst.nr_folios);
	start(context);
	KUNIT_ASSERT_TRUE(test, wait_ended(tst.nr_bios));
}

/* What is wrong with a folio, NULL if nothing is. */
static const char *wrong(struct test_folio *tf)
{
	struct folio *folio = tf->folio;
	bool cached = xa_load(&tf->inode->i_mapping->i_pages, tf->index) == folio;
	int refs = 1 + tf->extra;

	if (cached != tf->stays)
		return cached ? "is still cached" : "was dropped";
	if (folio_test_locked(folio) != tf->locked)
		return tf->locked ? "was unlocked" : "is locked";
	if (atomic_read(&tf->freed) != !cached)
		return "had ->free_folio() called more or less than once";
	if (tf->refuses && !atomic_read(&tf->asked))
		return "was never to be released";
	if (cached && tf->marked && !folio_test_dropbehind(folio))
		return "is no longer marked";
	if (cached)
		refs += folio_nr_pages(folio) + folio_has_private(folio);
	if (folio_ref_count(folio) != refs)
		return "has a reference of somebody else";
	return NULL;
}

static struct test_folio *first_wrong(void)
{
	struct test_folio *tf;

	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++)
		if (wrong(tf))
			return tf;
	return NULL;
}

/*
 * Whether all is as expected, at some time until @timeout. Or later, if by then
 * this has looked less often than it should have: others had no CPU either.
 */
static bool check(struct kunit *test, unsigned long timeout, const char *when)
{
	unsigned long end = jiffies + timeout;
	/*
	 * As many as there are on a machine that does nothing else, where all
	 * tries are waited for; or fewer, so that the last one comes too late.
	 */
	int wanted = jiffies_to_msecs(timeout) * (timeout == RETRIED ? 4 : 1);
	int looks = wanted;
	struct test_folio *tf;

	/* Not looked at once more: one that is tried again just then is locked. */
	while ((tf = first_wrong()) && (looks > 0 || time_before(jiffies, end))) {
		usleep_range(100, 200);
		looks--;
	}
	if (tf)
		KUNIT_FAIL(test,
			   "%s (%s): folio %d of %d %s, %d references, %pGp, %u ms, %d looks",
			   when, context_names[tst.context], (int)(tf - tst.folios),
			   tst.nr_folios, wrong(tf), folio_ref_count(tf->folio),
			   &tf->folio->flags.f, jiffies_to_msecs(jiffies - end + timeout),
			   wanted - looks);
	return !tf;
}

/* What is cached can be invalidated when nobody has a reference to it. */
static bool inode_empty(struct inode *inode)
{
	unsigned long end = jiffies + RETRIED;

	for (;;) {
		invalidate_mapping_pages(inode->i_mapping, 0, -1);
		if (!inode->i_mapping->nrpages)
			return true;
		if (time_after(jiffies, end))
			return false;
		/* What could not be invalidated is in one of its batches. */
		lru_add_drain_all();
		usleep_range(1000, 2000);
	}
}

/* Who took a folio out of the cache calls ->free_folio() after that. */
static bool freed_once(struct test_folio *tf)
{
	unsigned long end = jiffies + RETRIED;

	while (!atomic_read(&tf->freed) && time_before(jiffies, end))
		usleep_range(100, 200);
	return atomic_read(&tf->freed) == 1;
}

static bool comes_free(struct folio *folio)
{
	unsigned long end = jiffies + RETRIED;

	while (folio_test_locked(folio) || folio_test_writeback(folio)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(10, 20);
	}
	return true;
}

/* Ends a round: whatever is left can be dropped, and nothing has leaked. */
static bool clean_up(struct kunit *test)
{
	struct test_folio *tf;
	bool ok = true;
	int i;

	/*
	 * Whoever waits for the lock of such a folio waits for ever. One that
	 * is about to be unlocked, or is just tried again, is not such.
	 */
	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++)
		if (!comes_free(tf->folio)) {
			KUNIT_FAIL(test, "folio %d is left behind",
				   (int)(tf - tst.folios));
			tst.nr_folios = 0;
			memset(tst.inodes, 0, sizeof(tst.inodes));
			return false;
		}
	for (tf = tst.folios; tf < &tst.folios[tst.nr_folios]; tf++) {
		tf->refuses = false;
		folio_lock(tf->folio);
		if (tf->folio->mapping)
			folio_cancel_dirty(tf->folio);
		folio_unlock(tf->folio);
		folio_put(tf->folio);
	}
	for (i = 0; i < NR_INODES && tst.inodes[i]; i++) {
		unsigned long end = jiffies + HZ / 10;
		int before = atomic_read(&evicted);

		ok &= inode_empty(tst.inodes[i]);
		KUNIT_EXPECT_TRUE_MSG(test, ok, "a folio has a reference of somebody else");
		iput(tst.inodes[i]);
		tst.inodes[i] = NULL;
		/* Not before the end of a retry, but unmount does not wait for many. */
		while (atomic_read(&evicted) == before && time_before(jiffies, end))
			usleep_range(100, 200);
		ok &= atomic_read(&evicted) == before + 1;
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&evicted), before + 1,
				    "somebody keeps the inode");
	}
	for (i = 0; i < tst.nr_folios; i++) {
		ok &= freed_once(&tst.folios[i]);
		KUNIT_EXPECT_EQ(test, atomic_read(&tst.folios[i].freed), 1);
	}
	ok &= !wb_stat_exact(WB_DONTCACHE_DIRTY);
	KUNIT_EXPECT_EQ(test, wb_stat_exact(WB_DONTCACHE_DIRTY), 0);
#ifdef CONFIG_DONTCACHE_PACED
	ok &= !wb_stat_exact(WB_DONTCACHE);
	KUNIT_EXPECT_EQ(test, wb_stat_exact(WB_DONTCACHE), 0);
	ok &= !wb_stat_exact(WB_DONTCACHE_WRITEBACK);
	KUNIT_EXPECT_EQ(test, wb_stat_exact(WB_DONTCACHE_WRITEBACK), 0);
#endif
	KUNIT_EXPECT_EQ(test, wb_stat_exact(WB_RECLAIMABLE), 0);
	KUNIT_EXPECT_EQ(test, wb_stat_exact(WB_WRITEBACK), 0);
	tst.nr_folios = 0;
	tst.nr_bios = 0;
	tst.after = NULL;
	return ok;
}

static void lock_folio(struct test_folio *tf)
{
	folio_lock(tf->folio);
	tf->locked = true;
}

static void unlock_folio(struct test_folio *tf)
{
	tf->locked = false;
	folio_unlock(tf->folio);
}

/* Whether upstream looks at folios at all: not in an interrupt. */
static bool looked_at(enum context context)
{
	return RUST || context != IRQ;
}

static int test_suite_init(struct kunit_suite *suite)
{
	int ret;

	mnt = kern_mount(&test_fs);
	if (IS_ERR(mnt))
		return PTR_ERR(mnt);
	/* So that its dirty pages are counted. */
	ret = super_setup_bdi(mnt->mnt_sb);
	if (ret)
		kern_unmount(mnt);
	return ret;
}

static void test_suite_exit(struct kunit_suite *suite)
{
	kern_unmount(mnt);
}

static int test_init(struct kunit *test)
{
	memset(&tst.nr_folios, 0, sizeof(tst) - offsetof(struct folio_test, nr_folios));
	init_waitqueue_head(&tst.wait);
	tst.irq_work = IRQ_WORK_INIT(finish_bios);
	return 0;
}

/* A failed assertion leaves the test early; bios must not outlive it. */
static void test_exit(struct kunit *test)
{
	WRITE_ONCE(tst.looked, true);
	wake_up(&tst.wait);
	if (tst.nr_bios)
		wait_ended(tst.nr_bios);
	if (tst.inodes[0])
		clean_up(test);
}

#endif /* _MM_DONTCACHE_TEST_H */
