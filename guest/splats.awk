# SPDX-License-Identifier: GPL-2.0
# Prints what a kernel complains of in its log, and fails if it does. Known, and
# not failures, are:
#
# - a report of KASAN at boot, long before our code: QEMU's interrupt during
#   identify_boot_cpu() on a stack that clang 19 has poisoned,
# - data races that KCSAN finds in code that is not ours: neither of the two functions
#   on top of either stack is of the engine or of the torture test,
# - those on what each CPU keeps of freed bios, which bio_put() reads in interrupts,
# - those on the tags of a mapping, which filemap_writeback() reads without a lock: it is a part
#   of filemap_dontcache_writeback().

BEGIN {
	BIO_CACHE = "data-race in (bio_put|bio_alloc_bioset) / (bio_put|bio_alloc_bioset)$"
	TAGS = "data-race in __xa_(clear|set)_mark / filemap_dontcache_writeback$"
}

# The time, and the thread or CPU that CONFIG_PRINTK_CALLER adds, are not part of the message.
{
	line = $0
	sub(/^\[[^]]*\] *(\[[^]]*\] )?/, "", line)
}

# The frames of a stack follow until its report ends. A race is between the first few.
function end_report() {
	if (kind == "KASAN" && text ~ /in handle_edge_irq/ && text ~ /identify_boot_cpu/)
		known++
	else if (kind == "KCSAN" && (top !~ /bio_task|bio_complete|dontcache|bio_torture/ ||
			title ~ BIO_CACHE || title ~ TAGS))
		foreign[title]++
	else if (kind != "") {
		failures++
		printf "%s", text
	}
	kind = ""
}

line ~ /^=+$/ {
	if (kind == "KASAN" || kind == "KCSAN")
		end_report()
	next
}

line ~ /BUG: KASAN:|BUG: KCSAN:/ {
	end_report()
	kind = line ~ /KASAN/ ? "KASAN" : "KCSAN"
	title = line
	text = line "\n"
	top = ""
	next
}

# What made an access; a helper makes it for its caller.
line ~ / to 0x[0-9a-f]+ of [0-9]+ bytes by / {
	depth = 0
}

kind == "KCSAN" && line ~ /\+0x[0-9a-f]+\/0x/ && line !~ /^(rust_helper_|kcsan_|__tsan_)/ && depth++ < 2 {
	top = top line "\n"
}

kind == "" && line ~ /BUG:|WARNING:|INFO: task .* blocked|detected stalls|self-detected stall|Oops|general protection fault|Kernel panic|ODEBUG:|(list|slab|memory).* corruption|UBSAN:|scheduling while atomic|Call Trace:/ {
	kind = "other"
	text = ""
	lines = 0
}

kind != "" {
	text = text line "\n"
	# Reports other than those two have no line that ends them.
	if (kind == "other" && ++lines == 60)
		end_report()
}

END {
	end_report()
	if (known)
		print "# known: " known " report(s) of handle_edge_irq() under identify_boot_cpu()"
	for (title in foreign)
		print "# not ours: " foreign[title] " x " title
	exit failures != 0
}
