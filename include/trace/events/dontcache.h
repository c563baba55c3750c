/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dontcache

#if !defined(_TRACE_DONTCACHE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DONTCACHE_H

#include <linux/bio.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/tracepoint.h>

/* From bio_task_defer to bio_task_complete of one bio is how long it waits. */
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

/* The device may be gone: of some stacked ones, the bio's is that of a path. */
TRACE_EVENT(bio_task_complete,
	TP_PROTO(struct bio *bio),
	TP_ARGS(bio),
	TP_STRUCT__entry(__field(const void *, bio)),
	TP_fast_assign(__entry->bio = bio;),
	TP_printk("bio=%p", __entry->bio)
);

TRACE_EVENT(bio_task_run,
	TP_PROTO(unsigned int cpu, unsigned int nr),
	TP_ARGS(cpu, nr),
	TP_STRUCT__entry(__field(unsigned int, cpu) __field(unsigned int, nr)),
	TP_fast_assign(__entry->cpu = cpu; __entry->nr = nr;),
	TP_printk("cpu=%u nr=%u", __entry->cpu, __entry->nr)
);

TRACE_EVENT(dontcache_drop,
	TP_PROTO(struct address_space *mapping, unsigned int folios),
	TP_ARGS(mapping, folios),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(unsigned int, folios)
	),
	TP_fast_assign(
		__entry->dev = mapping->host->i_sb->s_dev;
		__entry->ino = mapping->host->i_ino;
		__entry->folios = folios;
	),
	TP_printk("dev=%d,%d ino=%llu folios=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->ino, __entry->folios)
);

TRACE_EVENT(dontcache_retry,
	TP_PROTO(struct folio *folio),
	TP_ARGS(folio),
	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned long, index)
	),
	TP_fast_assign(__entry->pfn = folio_pfn(folio); __entry->index = folio->index;),
	TP_printk("pfn=0x%lx index=%lu", __entry->pfn, __entry->index)
);

#ifdef CONFIG_DONTCACHE_PACED
TRACE_EVENT(dontcache_decide,
	TP_PROTO(struct address_space *mapping, loff_t first, loff_t last,
		 unsigned int what),
	TP_ARGS(mapping, first, last, what),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(loff_t, first)
		__field(loff_t, last)
		__field(unsigned int, what)
	),
	TP_fast_assign(
		__entry->dev = mapping->host->i_sb->s_dev;
		__entry->ino = mapping->host->i_ino;
		__entry->first = first;
		__entry->last = last;
		__entry->what = what;
	),
	TP_printk("dev=%d,%d ino=%llu first=%lld last=%lld %s",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->ino, __entry->first, __entry->last,
		  __print_symbolic(__entry->what, { 0, "nothing" }, { 1, "skip" },
				   { 2, "kick" }, { 3, "start" }, { 4, "pace" }))
);

TRACE_EVENT(dontcache_piece,
	TP_PROTO(struct address_space *mapping, unsigned long first,
		 unsigned long end, unsigned long started),
	TP_ARGS(mapping, first, end, started),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(unsigned long, first)
		__field(unsigned long, end)
		__field(unsigned long, started)
	),
	TP_fast_assign(
		__entry->dev = mapping->host->i_sb->s_dev;
		__entry->ino = mapping->host->i_ino;
		__entry->first = first;
		__entry->end = end;
		__entry->started = started;
	),
	TP_printk("dev=%d,%d ino=%llu first=%lu end=%lu started=%lu",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->ino, __entry->first, __entry->end,
		  __entry->started)
);

TRACE_EVENT(dontcache_pause,
	TP_PROTO(struct address_space *mapping, unsigned long footprint,
		 unsigned long writeback, unsigned long bound,
		 unsigned long usecs),
	TP_ARGS(mapping, footprint, writeback, bound, usecs),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(unsigned long, footprint)
		__field(unsigned long, writeback)
		__field(unsigned long, bound)
		__field(unsigned long, usecs)
	),
	TP_fast_assign(
		__entry->dev = mapping->host->i_sb->s_dev;
		__entry->ino = mapping->host->i_ino;
		__entry->footprint = footprint;
		__entry->writeback = writeback;
		__entry->bound = bound;
		__entry->usecs = usecs;
	),
	TP_printk("dev=%d,%d ino=%llu footprint=%lu writeback=%lu bound=%lu usecs=%lu",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->ino, __entry->footprint,
		  __entry->writeback, __entry->bound, __entry->usecs)
);
#endif

#endif /* _TRACE_DONTCACHE_H */

#include <trace/define_trace.h>
