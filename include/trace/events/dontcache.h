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

#endif /* _TRACE_DONTCACHE_H */

#include <trace/define_trace.h>
