// SPDX-License-Identifier: GPL-2.0
/*
 * Drop folios of uncached writes: what needs their locks, and those that have
 * to be tried again. What becomes of a folio is decided in
 * rust/kernel/dontcache/drop.rs.
 */

#include <linux/buffer_head.h>
#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/folio_batch.h>
#include <linux/pagemap.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <trace/events/dontcache.h>
#include "internal.h"

/* Folios that wait for another try. More than that are left in the cache. */
#define NR_RETRIES	256
#define RETRY_DELAY	(HZ / 4)

struct dontcache_again {
	struct folio *folio;
	unsigned int tries;
};

static DEFINE_SPINLOCK(again_lock);
static struct dontcache_again again[NR_RETRIES];
static unsigned int nr_again;

/**
 * dontcache_lock - try to lock a folio and look at it
 * @folio: the folio
 *
 * Context: task.
 * Return: DONTCACHE_FOLIO_* flags, none of them if somebody else has the lock.
 */
unsigned int dontcache_lock(struct folio *folio)
{
	unsigned int state = DONTCACHE_FOLIO_LOCKED;

	if (!folio_trylock(folio))
		return 0;
	if (!folio->mapping || !folio_test_dropbehind(folio))
		state |= DONTCACHE_FOLIO_GONE;
	if (folio_test_writeback(folio))
		state |= DONTCACHE_FOLIO_WRITEBACK;
	if (folio_test_dirty(folio))
		state |= DONTCACHE_FOLIO_DIRTY;
	if (folio_mapped(folio))
		state |= DONTCACHE_FOLIO_MAPPED;
	/*
	 * Further references say nothing: the flusher and fsync() have one to
	 * what they have written, and the LRU's per-CPU batches to what is new.
	 */
	if (folio_test_referenced(folio) || folio_maybe_dma_pinned(folio))
		state |= DONTCACHE_FOLIO_REFERENCED;
	return state;
}

static_assert(FOLIO_BATCH_SIZE >= DONTCACHE_DROPS);
static_assert(AS_KERNEL_FILE < AS_RELEASE_BUFFERS);
static_assert(AS_FOLIO_ORDER_MIN > AS_RELEASE_BUFFERS);

/*
 * Whether nobody needs the buffers of a folio. A buffer that is the journal's
 * has a reference.
 */
static bool buffers_unused(struct buffer_head *head)
{
	struct buffer_head *bh = head;

	do {
		if (buffer_dirty(bh) || buffer_locked(bh) ||
		    atomic_read(&bh->b_count) || bh->b_mmb)
			return false;
		bh = bh->b_this_page;
	} while (bh != head);
	return true;
}

/*
 * The batch of try_to_free_buffers(), which takes i_private_lock for each
 * folio. What is not simple is left to it.
 */
static void free_buffers(struct address_space *mapping, struct folio **folios,
			 unsigned int nr_folios)
{
	struct buffer_head *heads[DONTCACHE_DROPS];
	unsigned int i, nr = 0;

	if (mapping->a_ops->release_folio &&
	    !test_bit(AS_RELEASE_BUFFERS, &mapping->flags))
		return;

	spin_lock(&mapping->i_private_lock);
	for (i = 0; i < nr_folios; i++) {
		struct folio *folio = folios[i];
		struct buffer_head *head = folio_buffers(folio);

		/* Checked: ext4 has data to put into the journal. */
		if (!head || folio_test_writeback(folio) ||
		    folio_test_checked(folio) || !buffers_unused(head))
			continue;
		folio_detach_private(folio);
		folio_cancel_dirty(folio);
		heads[nr++] = head;
	}
	spin_unlock(&mapping->i_private_lock);

	while (nr--) {
		struct buffer_head *bh = heads[nr];

		do {
			struct buffer_head *next = bh->b_this_page;

			free_buffer_head(bh);
			bh = next;
		} while (bh != heads[nr]);
	}
}

/**
 * dontcache_remove - drop folios that are locked, clean and of one mapping
 * @folios: the folios, at least one; those that cannot be removed come first on
 *	return, unlocked, the references to the others are gone
 * @nr: how many they are, at most DONTCACHE_DROPS
 *
 * The batch of folio_unmap_invalidate(), which takes i_lock and the i_pages
 * lock for each folio.
 *
 * Context: task.
 * Return: how many could not be removed.
 */
unsigned int dontcache_remove(struct folio **folios, unsigned int nr)
{
	struct address_space *mapping = folios[0]->mapping;
	void (*free_folio)(struct folio *folio);
	unsigned int refs[FOLIO_BATCH_SIZE];
	unsigned int i, kept = 0;
	struct folio_batch gone;
	long pages = 0;

	folio_batch_init(&gone);
	if (folio_buffers(folios[0]))
		free_buffers(mapping, folios, nr);
	for (i = 0; i < nr; i++)
		if (!filemap_release_folio(folios[i], 0))
			swap(folios[kept++], folios[i]);

	spin_lock(&mapping->host->i_lock);
	xa_lock_irq(&mapping->i_pages);
	for (i = kept; i < nr; i++) {
		struct folio *folio = folios[i];

		/* Who has a pin may dirty it without the lock. */
		if (folio_test_dirty(folio)) {
			folios[kept++] = folio;
			continue;
		}
		refs[folio_batch_count(&gone)] = folio_nr_pages(folio) + 1;
		pages += folio_nr_pages(folio);
		folio_clear_dropbehind(folio);
		__filemap_remove_folio(folio, NULL);
		folio_batch_add(&gone, folio);
	}
	xa_unlock_irq(&mapping->i_pages);
	trace_dontcache_drop(mapping, folio_batch_count(&gone), pages);
	if (mapping_shrinkable(mapping))
		inode_lru_list_add(mapping->host);
	free_folio = mapping->a_ops->free_folio;
	/* The inode may go away with its last folio: not to be used any more. */
	spin_unlock(&mapping->host->i_lock);

	dontcache_count(DONTCACHE_DROP, pages);
	for (i = 0; i < folio_batch_count(&gone); i++) {
		if (free_folio)
			free_folio(gone.folios[i]);
		folio_unlock(gone.folios[i]);
	}
	if (folio_batch_count(&gone))
		folios_put_refs(&gone, refs);
	for (i = 0; i < kept; i++)
		folio_unlock(folios[i]);
	return kept;
}

static void retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(retry_work, retry);

static void retry(struct work_struct *work)
{
	static struct dontcache_again now[NR_RETRIES];
	unsigned int i, nr;

	spin_lock_irq(&again_lock);
	nr = nr_again;
	memcpy(now, again, nr * sizeof(*now));
	nr_again = 0;
	spin_unlock_irq(&again_lock);

	for (i = 0; i < nr; i++)
		dontcache_drop(now[i].folio, NULL, now[i].tries);
}

/**
 * dontcache_retry - try to drop a folio later
 * @folio: the folio, with a reference that goes over
 * @tries: how often it has been tried then
 *
 * Context: any but NMI.
 * Return: false if there are too many already; the reference stays then.
 */
bool dontcache_retry(struct folio *folio, unsigned int tries)
{
	unsigned long flags;
	bool room, first;

	spin_lock_irqsave(&again_lock, flags);
	room = nr_again < NR_RETRIES;
	first = !nr_again;
	if (room)
		again[nr_again++] = (struct dontcache_again){ folio, tries };
	spin_unlock_irqrestore(&again_lock, flags);

	if (first)
		queue_delayed_work(system_dfl_wq, &retry_work, RETRY_DELAY);
	return room;
}

/**
 * dontcache_end_dropbehind - drop a folio whose writeback has ended
 * @folio: the folio, marked as dropbehind; the caller has a reference
 *
 * At once, together with others if the caller is a worker that completes bios,
 * or a little later where locks cannot be taken.
 *
 * Context: any but NMI.
 */
void dontcache_end_dropbehind(struct folio *folio)
{
	folio_get(folio);
	if (in_task()) {
		dontcache_drop(folio, bio_task_drops(), 0);
	} else if (dontcache_retry(folio, 1)) {
		dontcache_count(DONTCACHE_RETRY, 1);
	} else {
		dontcache_count(DONTCACHE_MISSED, 1);
		folio_put(folio);
	}
}
