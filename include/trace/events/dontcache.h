/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dontcache

#if !defined(_TRACE_DONTCACHE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DONTCACHE_H

#include <linux/bio.h>
#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/tracepoint.h>

TRACE_EVENT(bio_task_defer,
	TP_PROTO(struct bio *bio),
	TP_ARGS(bio),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(const void *, bio)
	),
	TP_fast_assign(
		__entry->dev = bio->bi_bdev ? bio->bi_bdev->bd_dev : 0;
		__entry->sector = bio->bi_iter.bi_sector;
		__entry->bio = bio;
	),
	TP_printk("dev=%d,%d sector=%llu bio=%p",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->bio)
);

/* The time is that of the bio that waited longest, from bio_endio() on. */
TRACE_EVENT_FN(bio_task_run,
	TP_PROTO(int cpu, unsigned long nr, unsigned long waited),
	TP_ARGS(cpu, nr, waited),
	TP_STRUCT__entry(
		__field(int, cpu)
		__field(unsigned long, nr)
		__field(unsigned long, waited)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->nr = nr;
		__entry->waited = waited;
	),
	TP_printk("cpu=%d nr=%lu waited=%luus",
		  __entry->cpu, __entry->nr, __entry->waited),
	bio_task_timing_on,
	bio_task_timing_off
);

TRACE_EVENT(dontcache_drop,
	TP_PROTO(struct address_space *mapping, unsigned int folios, long pages),
	TP_ARGS(mapping, folios, pages),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(unsigned int, folios)
		__field(long, pages)
	),
	TP_fast_assign(
		__entry->dev = mapping->host->i_sb->s_dev;
		__entry->ino = mapping->host->i_ino;
		__entry->folios = folios;
		__entry->pages = pages;
	),
	TP_printk("dev=%d,%d ino=%llu folios=%u pages=%ld",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->ino,
		  __entry->folios, __entry->pages)
);

TRACE_EVENT(dontcache_retry,
	TP_PROTO(struct folio *folio, unsigned int state, unsigned int tries),
	TP_ARGS(folio, state, tries),
	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned long, index)
		__field(unsigned int, state)
		__field(unsigned int, tries)
	),
	TP_fast_assign(
		__entry->pfn = folio_pfn(folio);
		__entry->index = folio->index;
		__entry->state = state;
		__entry->tries = tries;
	),
	TP_printk("pfn=0x%lx index=%lu state=%s tries=%u",
		  __entry->pfn, __entry->index,
		  __print_flags(__entry->state, "|",
				{ DONTCACHE_FOLIO_LOCKED, "ours" },
				{ DONTCACHE_FOLIO_GONE, "gone" },
				{ DONTCACHE_FOLIO_WRITEBACK, "writeback" },
				{ DONTCACHE_FOLIO_DIRTY, "dirty" },
				{ DONTCACHE_FOLIO_MAPPED, "mapped" },
				{ DONTCACHE_FOLIO_REFERENCED, "referenced" }),
		  __entry->tries)
);

#endif /* _TRACE_DONTCACHE_H */

#include <trace/define_trace.h>
