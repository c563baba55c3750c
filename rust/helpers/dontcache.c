// SPDX-License-Identifier: GPL-2.0

#include <linux/dontcache.h>
#include <linux/fs.h>
#include <linux/pagemap.h>

__rust_helper bool
rust_helper_dontcache_mapping_busy(struct address_space *mapping)
{
	return mapping_tagged(mapping, PAGECACHE_TAG_WRITEBACK);
}
