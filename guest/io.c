// SPDX-License-Identifier: GPL-2.0
/*
 * What the guest tests cannot do from a shell: reads and writes with RWF_*
 * flags, by pwritev2() and by io_uring, and a look at what stays cached.
 * Prints one line; exit status 0 if the operation did all it was asked for.
 *
 * usage: io write|read ENGINE FLAGS FILE OFFSET LENGTH BLOCK
 *        io put FLAGS OPEN FILE OFFSET LENGTH BLOCK [MICROSECONDS]
 *        io lend FLAGS SOURCE FILE LENGTH
 *        io nth NTH FLAGS FILE LENGTH
 *        io flags FILE lazy|none
 *        io cached FILE OFFSET LENGTH
 *        io gone FILE OFFSET LENGTH MILLISECONDS
 *        io meet map|pin|write FLAGS FILE LENGTH MILLISECONDS
 *        io reread FLAGS FILE LENGTH
 *        io move FLAGS FILE LENGTH
 *        io sample MILLISECONDS
 *        io syncs MILLISECONDS
 *        io opened PREFIX
 *        io count WINDOW OFFSET FLAGS FILE BLOCK NR STRIDE STEP each|end
 *        io cpu CPU 0|1 SECONDS
 *        io loopback
 *        io peek SYMBOL WORDS
 *        io poweroff
 *
 * ENGINE is sync or uring. The data depend on their offset, so that a read
 * tells what was written where. "write" ends with fsync() and then waits for
 * the pages to be dropped, with the file open: the last close of a block
 * device would drop them in any case. "put" writes and does nothing else, to a
 * file that is opened with OPEN: none, dsync, sync, direct or append, and waits
 * so long after each write. "gone" waits so long for the pages to be dropped.
 * "lend" writes pages the last of which is that of SOURCE, mapped, and so takes
 * as long as that is read. "nth" writes a new file while the NTH allocation that
 * may not sleep fails, says whether there were so many, writes it once more, and
 * reads it. "flags" tries what may be passed to preadv2() and pwritev2(), and
 * prints a line for each. "meet" does the same as
 * "write" with a device that takes longer than it needs to map the pages, to pin
 * one of them for a direct write of it to what follows them, or to write them
 * once more, while they are under writeback. "reread" writes, reads without a
 * flag what is no longer under writeback, and prints how many pages are cached
 * after fsync(). "move" writes, moves the last quarter of the pages to the other
 * NUMA node of two while they wait for a slow device, and prints how many moved,
 * and how many of all are cached after fsync().
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static int fail(const char *what)
{
	printf("%s\n", strerrorname_np(errno) ?: what);
	return 1;
}

static unsigned long long word_at(unsigned long long offset)
{
	/* The increment and multiplier of splitmix64. */
	unsigned long long x = (offset + 1) * 0x9e3779b97f4a7c15ULL;

	return (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
}

static void fill(unsigned char *buf, off_t offset, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned long long word = word_at((offset + i) / 8);

		buf[i] = word >> ((offset + i) % 8 * 8);
	}
}

static int ring_open(struct ring *r)
{
	struct io_uring_params p = {};
	char *sq, *cq;

	r->fd = syscall(SYS_io_uring_setup, 1, &p);
	if (r->fd < 0)
		return -1;
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned int),
		  PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqes),
		  PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || r->sqes == MAP_FAILED)
		return -1;
	r->sq_tail = (void *)(sq + p.sq_off.tail);
	r->sq_mask = (void *)(sq + p.sq_off.ring_mask);
	r->sq_array = (void *)(sq + p.sq_off.array);
	r->cq_head = (void *)(cq + p.cq_off.head);
	r->cq_tail = (void *)(cq + p.cq_off.tail);
	r->cq_mask = (void *)(cq + p.cq_off.ring_mask);
	r->cqes = (void *)(cq + p.cq_off.cqes);
	return 0;
}

/* Submits one request and waits for so many to complete. */
static int ring_submit(struct ring *r, int op, int fd, struct iovec *iov,
		       off_t offset, int flags, int wait)
{
	unsigned int tail = *r->sq_tail;
	unsigned int slot = tail & *r->sq_mask;
	struct io_uring_sqe *sqe = &r->sqes[slot];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (unsigned long)iov;
	sqe->len = 1;
	sqe->off = offset;
	sqe->rw_flags = flags;
	r->sq_array[slot] = slot;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, r->fd, 1, wait, IORING_ENTER_GETEVENTS,
		       NULL, 0);
}

static ssize_t ring_rw(struct ring *r, int op, int fd, struct iovec *iov,
		       off_t offset, int flags)
{
	unsigned int head = *r->cq_head;
	ssize_t ret;

	if (ring_submit(r, op, fd, iov, offset, flags, 1) < 0)
		return -1;
	while (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == head)
		;
	ret = r->cqes[head & *r->cq_mask].res;
	__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	return ret;
}

/* Pages of a range that are in the page cache, or -1. */
static long cached(int fd, off_t offset, size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE), nr, i;
	unsigned char *vec;
	long resident = 0;
	char *map;

	len += offset % page;
	offset -= offset % page;
	nr = (len + page - 1) / page;
	vec = malloc(nr);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, offset);
	if (!vec || map == MAP_FAILED || mincore(map, len, vec))
		return -1;
	for (i = 0; i < nr; i++)
		resident += vec[i] & 1;
	munmap(map, len);
	free(vec);
	return resident;
}

static long vm_counter(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "r");
	char key[64];
	long value, found = -1;

	while (f && fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Prints dirty, writeback and all file pages and the time in ms, until it is killed. */
static void sample(long ms)
{
	long long start = now_ns();

	setlinebuf(stdout);
	while (1) {
		printf("%ld %ld %ld %lld\n", vm_counter("nr_dirty"),
		       vm_counter("nr_writeback"), vm_counter("nr_file_pages"),
		       (now_ns() - start) / 1000000);
		usleep(ms * 1000);
	}
}

/* Prints the path and the flags of open files whose path begins with PREFIX. */
static int opened(const char *prefix)
{
	char path[64], target[4096], line[64];
	struct dirent *pid, *fd;
	DIR *proc = opendir("/proc"), *fds;

	while (proc && (pid = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%.10s/fd", pid->d_name);
		fds = pid->d_name[0] >= '0' && pid->d_name[0] <= '9' ? opendir(path) : NULL;
		while (fds && (fd = readdir(fds))) {
			ssize_t len = readlinkat(dirfd(fds), fd->d_name, target,
						 sizeof(target) - 1);
			FILE *info;

			target[len < 0 ? 0 : len] = '\0';
			if (strncmp(target, prefix, strlen(prefix)))
				continue;
			snprintf(path, sizeof(path), "/proc/%.10s/fdinfo/%.10s",
				 pid->d_name, fd->d_name);
			/* A process may be gone by now. */
			info = fopen(path, "r");
			while (info && fgets(line, sizeof(line), info))
				if (!strncmp(line, "flags:", 6))
					printf("%s %s", target, line + 6 + strspn(line + 6, " \t"));
			if (info)
				fclose(info);
		}
		if (fds)
			closedir(fds);
	}
	return 0;
}

/*
 * Prints how many ns sync() takes, with a pause after each, until SIGTERM. A
 * call that is under way then still counts, or the longest would be left out.
 */
static int syncs(long ms)
{
	struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	do {
		long long start = now_ns();

		sync();
		printf("%lld\n", now_ns() - start);
	} while (sigtimedwait(&term, NULL, &pause) < 0);
	return 0;
}

/*
 * Waits until the flusher has done what the writes asked of it. An fsync() that
 * meets it holds the lock of a page while it waits for its writeback, and
 * upstream does not drop a page that is locked when its writeback ends.
 */
static void settle(void)
{
	long dirty = -1, now;
	int calm, tries;

	if (!access("/proc/sys/vm/dontcache_policy", F_OK))
		return;
	for (calm = 0, tries = 0; calm < 5 && tries < 300; tries++) {
		usleep(10000);
		now = vm_counter("nr_dirty");
		calm = now == dirty && !vm_counter("nr_writeback") ? calm + 1 : 0;
		dirty = now;
	}
}

static int rw(int write, char **arg)
{
	int uring = !strcmp(arg[0], "uring"), flags = strtol(arg[1], NULL, 0);
	off_t offset = strtoll(arg[3], NULL, 0), end, pos;
	size_t len = strtoull(arg[4], NULL, 0), block = strtoull(arg[5], NULL, 0);
	int fd = open(arg[2], write ? O_RDWR | O_CREAT : O_RDONLY, 0644), tries;
	unsigned char *buf = malloc(block), *want = malloc(block);
	struct ring ring = {};
	long left = 0;

	if (fd < 0 || !buf || !want || (uring && ring_open(&ring)))
		return fail("setup");
	end = offset + len;
	for (pos = offset; pos < end;) {
		struct iovec iov = {
			.iov_base = buf,
			.iov_len = (off_t)block < end - pos ? block : (size_t)(end - pos),
		};
		ssize_t ret;

		fill(want, pos, iov.iov_len);
		if (write)
			memcpy(buf, want, iov.iov_len);
		if (uring)
			ret = ring_rw(&ring, write ? IORING_OP_WRITEV : IORING_OP_READV,
				      fd, &iov, pos, flags);
		else if (write)
			ret = pwritev2(fd, &iov, 1, pos, flags);
		else
			ret = preadv2(fd, &iov, 1, pos, flags);
		if (ret < 0)
			return fail("I/O");
		if (!ret) {
			printf("end of file at %lld\n", (long long)pos);
			return 1;
		}
		if (!write && memcmp(buf, want, ret)) {
			printf("wrong data at %lld\n", (long long)pos);
			return 1;
		}
		pos += ret;
	}
	if (write)
		settle();
	if (write && fsync(fd))
		return fail("fsync");
	/* Who waits for writeback may be awake before the worker drops the page. */
	for (tries = 0; write && tries < 200; tries++) {
		left = cached(fd, offset, len);
		if (left <= 0)
			break;
		usleep(10000);
	}
	if (write)
		printf("ok, %ld pages cached\n", left);
	else
		printf("ok\n");
	return 0;
}

static int open_flags(const char *name)
{
	static const struct {
		const char *name;
		int flags;
	} how[] = {
		{ "none", 0 },
		{ "dsync", O_DSYNC },
		{ "sync", O_SYNC },
		{ "direct", O_DIRECT },
		{ "append", O_APPEND },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(how); i++)
		if (!strcmp(how[i].name, name))
			return how[i].flags;
	return -1;
}

static int put(char **arg, long pause)
{
	int flags = strtol(arg[0], NULL, 0), how = open_flags(arg[1]);
	off_t pos = strtoll(arg[3], NULL, 0), end;
	size_t block = strtoull(arg[5], NULL, 0);
	struct iovec iov;
	int fd;

	end = pos + strtoll(arg[4], NULL, 0);
	fd = how < 0 ? -1 : open(arg[2], O_RDWR | O_CREAT | how, 0644);
	if (fd < 0 || posix_memalign(&iov.iov_base, 4096, block))
		return fail("setup");
	while (pos < end) {
		ssize_t ret;

		iov.iov_len = (off_t)block < end - pos ? block : (size_t)(end - pos);
		fill(iov.iov_base, pos, iov.iov_len);
		ret = pwritev2(fd, &iov, 1, pos, flags);
		if (ret <= 0)
			return fail("I/O");
		pos += ret;
		if (pause)
			usleep(pause);
	}
	printf("ok\n");
	return 0;
}

static int lend(char **arg)
{
	size_t len = strtoull(arg[3], NULL, 0), page = sysconf(_SC_PAGESIZE);
	int source = open(arg[1], O_RDONLY), fd = open(arg[2], O_RDWR);
	struct iovec iov = { .iov_len = len };
	ssize_t ret;

	iov.iov_base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (source < 0 || fd < 0 || iov.iov_base == MAP_FAILED)
		return fail("setup");
	fill(iov.iov_base, 0, len);
	if (mmap((char *)iov.iov_base + len - page, page, PROT_READ, MAP_SHARED | MAP_FIXED,
		 source, 0) == MAP_FAILED)
		return fail("mapping");
	ret = pwritev2(fd, &iov, 1, 0, strtol(arg[0], NULL, 0));
	if (ret < 0)
		return fail("I/O");
	printf("ok, %zd bytes\n", ret);
	return 0;
}

static int failing(char **arg)
{
	size_t len = strtoull(arg[3], NULL, 0);
	int flags = strtol(arg[1], NULL, 0), fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	struct iovec iov = { malloc(len), len };
	unsigned char *want = malloc(len);
	char left[16] = "";
	int fd;

	unlink(arg[2]);
	fd = open(arg[2], O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || fail_nth < 0 || !iov.iov_base || !want)
		return fail("setup");
	fill(want, 0, len);
	memcpy(iov.iov_base, want, len);
	if (write(fail_nth, arg[0], strlen(arg[0])) < 0)
		return fail("fail-nth");
	if (pwritev2(fd, &iov, 1, 0, flags) < 0 && errno != ENOMEM)
		return fail("I/O");
	if (pread(fail_nth, left, sizeof(left) - 1, 0) <= 0 || write(fail_nth, "0", 1) < 0)
		return fail("fail-nth");
	/* That may have failed too, and an error is told once */
	fsync(fd);
	if (pwritev2(fd, &iov, 1, 0, flags) != (ssize_t)len || fsync(fd) ||
	    pread(fd, iov.iov_base, len, 0) != (ssize_t)len || memcmp(iov.iov_base, want, len))
		return fail("another write");
	printf("ok, %s\n", atoi(left) ? "there are less" : "it failed");
	return 0;
}

/* Waits so long for the pages of a range to be dropped, and prints how many are left. */
static int gone(char **arg)
{
	int fd = open(arg[0], O_RDONLY);
	long long until = now_ns() + strtoll(arg[3], NULL, 0) * 1000000;
	long left;

	do {
		left = fd < 0 ? -1 : cached(fd, strtoll(arg[1], NULL, 0),
					    strtoull(arg[2], NULL, 0));
		if (left < 0)
			return fail("gone");
		if (left)
			usleep(10000);
	} while (left && now_ns() < until);
	printf("%ld pages cached\n", left);
	return 0;
}

#define FLAG_NOWAIT	0x08
#define FLAG_APPEND	0x10
#define FLAG_NOAPPEND	0x20
#define FLAG_ATOMIC	0x40
#define FLAG_DONTCACHE	0x80
#define FLAG_LAZY	0x200
#define FLAG_UNKNOWN	0xfffffc00u

/* What preadv2() and pwritev2() are tried on. */
struct probes {
	int file;	/* for reading and writing */
	int other;	/* open for the wrong of the two */
	int dir;
	int pipe[2];
	int write;
	int failed;
	char buf[4096];
};

/* The C library has its own opinion of some flags, so it is not asked. */
static long rw2(int write, int fd, const struct iovec *iov, long nr, long long pos, int flags)
{
	return syscall(write ? SYS_pwritev2 : SYS_preadv2, fd, iov, nr, (long)pos, 0L, flags);
}

static void verdict(struct probes *p, const char *name, int flags, long got, long want)
{
	char gotten[32];

	if (got == want) {
		printf("ok flags: %s %s (%#x)\n", p->write ? "write" : "read", name, flags);
		return;
	}
	snprintf(gotten, sizeof(gotten), "%ld", got);
	printf("not ok flags: %s %s (%#x): got %s, wanted %s\n", p->write ? "write" : "read",
	       name, flags, got < 0 ? strerrorname_np(-got) : gotten,
	       want < 0 ? strerrorname_np(-want) : "success");
	p->failed = 1;
}

/* expect PROBES NAME FD IOV NR POS FLAGS: WANT is bytes or a negative error. */
static void expect(struct probes *p, const char *name, int fd, const struct iovec *iov, long nr,
		   long long pos, int flags, long want)
{
	long got = rw2(p->write, fd, iov, nr, pos, flags);

	verdict(p, name, flags, got < 0 ? -errno : got, want);
}

/* What is wrong without any flag stays wrong in the same way with each. */
static void probe_arguments(struct probes *p, int flags)
{
	const struct iovec good = { p->buf, 64 }, endless = { p->buf, -1 };
	const struct iovec bad = { (void *)(uintptr_t)-4096, 64 };
	const struct iovec two[] = { { p->buf, 64 }, { NULL, 0 } };
	const struct iovec around[] = { { NULL, 0 }, { p->buf, 64 }, { NULL, 0 } };
	struct iovec many[IOV_MAX + 1];
	int i;

	for (i = 0; i <= IOV_MAX; i++)
		many[i] = (struct iovec){ p->buf, 1 };
	expect(p, "64 bytes", p->file, &good, 1, 0, flags, 64);
	expect(p, "an empty iovec at the end", p->file, two, 2, 0, flags, 64);
	expect(p, "empty iovecs around", p->file, around, 3, 0, flags, 64);
	expect(p, "no iovec", p->file, &good, 0, 0, flags, 0);
	expect(p, "as many iovecs as there may be", p->file, many, IOV_MAX, 0, flags, IOV_MAX);
	expect(p, "one iovec more than that", p->file, many, IOV_MAX + 1, 0, flags, -EINVAL);
	expect(p, "-1 iovecs", p->file, &good, -1, 0, flags, -EINVAL);
	expect(p, "an iovec of -1 bytes", p->file, &endless, 1, 0, flags, -EINVAL);
	expect(p, "a bad address", p->file, &bad, 1, 0, flags, -EFAULT);
	expect(p, "a negative offset", p->file, &good, 1, -2, flags, -EINVAL);
	expect(p, "a bad descriptor", -1, &good, 1, 0, flags, -EBADF);
	expect(p, "the wrong descriptor", p->other, &good, 1, 0, flags, -EBADF);
	if (!p->write && p->dir >= 0)
		expect(p, "a directory", p->dir, &good, 1, 0, flags, flags ? -EOPNOTSUPP : -EISDIR);
	expect(p, "a pipe", p->pipe[p->write], &good, 1, 0, flags, -ESPIPE);
}

/* The offset -1 is the file's own, and moves it; others do not. */
static void probe_offset(struct probes *p, int flags)
{
	const struct iovec iov = { p->buf, 64 };

	lseek(p->file, 128, SEEK_SET);
	expect(p, "an offset", p->file, &iov, 1, 0, flags, 64);
	verdict(p, "leaves the file's own alone", flags, lseek(p->file, 0, SEEK_CUR), 128);
	expect(p, "offset -1", p->file, &iov, 1, -1, flags, 64);
	verdict(p, "moves the file's own", flags, lseek(p->file, 0, SEEK_CUR), 192);
}

/* A flag that nobody knows is told so, whatever is with it: that is how programs probe. */
static void probe_unknown(struct probes *p)
{
	const int with[] = { 0, FLAG_DONTCACHE, FLAG_LAZY, FLAG_DONTCACHE | FLAG_LAZY,
			     FLAG_APPEND | FLAG_NOAPPEND, FLAG_NOWAIT };
	const struct iovec good = { p->buf, 64 };
	unsigned int bit;
	size_t i;

	expect(p, "all flags", p->file, &good, 1, 0, -1, -EOPNOTSUPP);
	for (bit = FLAG_UNKNOWN & -FLAG_UNKNOWN; bit; bit <<= 1)
		for (i = 0; i < ARRAY_SIZE(with); i++)
			expect(p, "an unknown flag", p->file, &good, 1, 0, bit | with[i],
			       -EOPNOTSUPP);
	/* What is wrong with the call itself comes first. */
	expect(p, "all flags, a bad descriptor", -1, &good, 1, 0, -1, -EBADF);
	expect(p, "all flags, a negative offset", p->file, &good, 1, -2, -1, -EINVAL);
	expect(p, "all flags, -1 iovecs", p->file, &good, -1, 0, -1, -EINVAL);
}

static void probe_mixes(struct probes *p, int flag)
{
	const struct iovec good = { p->buf, 64 };
	struct stat before, after;
	long got;

	expect(p, "APPEND and NOAPPEND", p->file, &good, 1, 0, flag | FLAG_APPEND | FLAG_NOAPPEND,
	       -EINVAL);
	/* A file that could have it would still not have it with so few bytes. */
	got = rw2(p->write, p->file, &good, 1, 0, flag | FLAG_ATOMIC) < 0 ? -errno : 0;
	verdict(p, "ATOMIC", flag | FLAG_ATOMIC, p->write && got == -EINVAL ? -EOPNOTSUPP : got,
		-EOPNOTSUPP);
	got = rw2(p->write, p->file, &good, 1, 0, flag | FLAG_NOWAIT);
	/* Which of these it is depends on the filesystem, and on what is cached. */
	if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP))
		got = 64;
	verdict(p, "NOWAIT", flag | FLAG_NOWAIT, got < 0 ? -errno : got, 64);
	if (!p->write || fstat(p->file, &before) || !S_ISREG(before.st_mode))
		return;
	expect(p, "APPEND", p->file, &good, 1, 0, flag | FLAG_APPEND, 64);
	fstat(p->file, &after);
	verdict(p, "APPEND makes the file longer", flag | FLAG_APPEND,
		after.st_size - before.st_size, 64);
	expect(p, "NOAPPEND", p->file, &good, 1, 0, flag | FLAG_NOAPPEND, 64);
	fstat(p->file, &before);
	verdict(p, "NOAPPEND does not", flag | FLAG_NOAPPEND, before.st_size - after.st_size, 0);
}

static int flags_of(const char *path, int lazy)
{
	struct probes p = { .dir = open("/", O_RDONLY | O_DIRECTORY) };
	const struct iovec good = { p.buf, 64 };
	struct iovec page = { p.buf, sizeof(p.buf) };

	p.file = open(path, O_RDWR | O_CREAT, 0644);
	if (p.file < 0 || pipe(p.pipe) || rw2(1, p.file, &page, 1, 0, 0) != sizeof(p.buf))
		return fail("setup");
	for (p.write = 0; p.write < 2; p.write++) {
		p.other = open(path, p.write ? O_RDONLY : O_WRONLY);
		probe_arguments(&p, 0);
		probe_arguments(&p, FLAG_DONTCACHE);
		probe_offset(&p, 0);
		probe_offset(&p, FLAG_DONTCACHE);
		probe_unknown(&p);
		probe_mixes(&p, 0);
		probe_mixes(&p, FLAG_DONTCACHE);
		if (lazy) {
			probe_arguments(&p, FLAG_LAZY);
			probe_offset(&p, FLAG_LAZY);
			probe_mixes(&p, FLAG_LAZY);
		}
		expect(&p, "the lazy flag", p.file, &good, 1, 0, FLAG_LAZY,
		       lazy ? 64 : -EOPNOTSUPP);
		expect(&p, "both flags", p.file, &good, 1, 0, FLAG_DONTCACHE | FLAG_LAZY,
		       lazy ? -EINVAL : -EOPNOTSUPP);
		close(p.other);
	}
	return p.failed;
}

/*
 * Pins the last page of those that are under writeback, and no longer maps it.
 * The direct write is under way after the writeback has ended, since it began
 * later.
 */
static int pin(const char *path, int fd, size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct iovec iov = { NULL, page };
	struct ring ring = {};
	unsigned char word[1];
	char *map;
	int direct = open(path, O_RDWR | O_DIRECT);

	if (direct < 0 || ring_open(&ring))
		return -1;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	/* One fault maps the pages around it as well. */
	fill(word, map[0], 1);
	iov.iov_base = map + len - page;
	usleep(100000);
	if (ring_submit(&ring, IORING_OP_WRITEV, direct, &iov, 2 * len, 0, 0) < 0)
		return -1;
	return munmap(map, len);
}

static int meet(char **arg)
{
	int flags = strtol(arg[1], NULL, 0), fd = open(arg[2], O_RDWR);
	size_t len = strtoull(arg[3], NULL, 0);
	struct iovec iov = { malloc(len), len };
	char *map;
	long wait = strtol(arg[4], NULL, 0);
	long long start = now_ns(), met;

	if (fd < 0 || !iov.iov_base)
		return fail("setup");
	fill(iov.iov_base, 0, len);
	if (pwritev2(fd, &iov, 1, 0, flags) != (ssize_t)len)
		return fail("write");
	if (!strcmp(arg[0], "map")) {
		/* One fault maps the pages around it as well. */
		map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			return fail("mmap");
		fill(iov.iov_base, map[0], 1);
	} else if (!strcmp(arg[0], "pin")) {
		if (pin(arg[2], fd, len))
			return fail("pin");
	} else if (pwritev2(fd, &iov, 1, 0, flags) != (ssize_t)len) {
		return fail("write");
	}
	met = now_ns();
	if (fsync(fd))
		return fail("fsync");
	/* The device takes 600 ms: it was at work all the time, and no longer is. */
	if (met - start > 550000000 || now_ns() - start < 590000000) {
		printf("not at the right time\n");
		return 1;
	}
	usleep(wait * 1000);
	printf("ok, %ld pages cached\n", cached(fd, 0, len));
	return 0;
}

static int reread(char **arg)
{
	int flags = strtol(arg[0], NULL, 0), fd = open(arg[1], O_RDWR | O_CREAT, 0644);
	size_t len = strtoull(arg[2], NULL, 0);
	struct iovec iov = { malloc(len), len };
	long left = -1;
	int tries;

	if (fd < 0 || !iov.iov_base)
		return fail("setup");
	fill(iov.iov_base, 0, len);
	if (pwritev2(fd, &iov, 1, 0, flags) != (ssize_t)len)
		return fail("write");
	if (sync_file_range(fd, 0, len, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER))
		return fail("sync_file_range");
	if (preadv2(fd, &iov, 1, 0, 0) != (ssize_t)len)
		return fail("read");
	if (fsync(fd))
		return fail("fsync");
	for (tries = 0; left && tries < 100; tries++) {
		usleep(10000);
		left = cached(fd, 0, len);
	}
	printf("ok, %ld pages cached\n", left);
	return 0;
}

/*
 * Faults that find the pages in the cache map those around as well, and clear
 * no mark. What is under writeback would be waited for, and dropped then.
 */
static long move_to_other_node(char *map, size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE), nr = len / page, i;
	void **pages = calloc(nr, sizeof(*pages));
	int *nodes = calloc(nr, sizeof(*nodes)), *now = malloc(nr * sizeof(*now));
	long moved = 0;

	if (!pages || !nodes || !now || madvise(map, len, MADV_POPULATE_READ))
		return -1;
	for (i = 0; i < nr; i++) {
		pages[i] = map + i * page;
		now[i] = -1;
	}
	if (syscall(SYS_move_pages, 0, nr, pages, NULL, nodes, 0))
		return -1;
	for (i = 0; i < nr; i++)
		nodes[i] = !nodes[i];
	/* One that cannot be moved keeps the rest of its call from being moved. */
	for (i = 0; i < nr; i += 64)
		if (syscall(SYS_move_pages, 0, 64, pages + i, nodes + i, now + i, MPOL_MF_MOVE) < 0)
			return -1;
	for (i = 0; i < nr; i++)
		moved += now[i] == nodes[i];
	free(pages);
	free(nodes);
	free(now);
	return moved;
}

static int move(char **arg)
{
	int flags = strtol(arg[0], NULL, 0), fd = open(arg[1], O_RDWR | O_CREAT, 0644);
	size_t len = strtoull(arg[2], NULL, 0), part = len / 4, page = sysconf(_SC_PAGESIZE), at;
	struct iovec iov = { malloc(len), len };
	char *map;
	long moved, before;

	if (fd < 0 || !iov.iov_base)
		return fail("setup");
	fill(iov.iov_base, 0, len);
	/* Page by page, or folios are large. */
	for (at = 0; at < len; at += page) {
		struct iovec one = { (char *)iov.iov_base + at, page };

		if (pwritev2(fd, &one, 1, at, flags) != (ssize_t)page)
			return fail("write");
	}
	before = cached(fd, len - part, part);
	map = mmap(NULL, part, PROT_READ, MAP_SHARED, fd, len - part);
	if (map == MAP_FAILED)
		return fail("mmap");
	moved = move_to_other_node(map, part);
	if (moved < 0)
		return fail("move_pages");
	munmap(map, part);
	settle();
	if (fsync(fd))
		return fail("fsync");
	usleep(500000);
	printf("%ld of %ld pages moved, %ld of all cached\n", moved, before,
	       cached(fd, 0, len));
	return 0;
}

/*
 * NR overwrites of BLOCK bytes, of every STRIDEth block of FILE: the nth of
 * them is (n * STEP) % NR, and each is waited for, or the last one only. Counted
 * as WINDOW, 0 warms up. Starts OFFSET us after a full second: what runs by the
 * clock, like ticks and the flusher, finds all windows alike. Prints the number
 * of writes, and of pages left cached.
 */
static int count(char **arg)
{
	unsigned int window = strtoul(arg[0], NULL, 0);
	int flags = strtol(arg[2], NULL, 0), fd = open(arg[3], O_RDWR);
	size_t block = strtoull(arg[4], NULL, 0);
	long nr = strtol(arg[5], NULL, 0), stride = strtol(arg[6], NULL, 0);
	long step = strtol(arg[7], NULL, 0), i;
	int each = !strcmp(arg[8], "each");
	struct iovec iov = { .iov_base = malloc(block), .iov_len = block };
	struct timespec start;

	if (fd < 0 || !iov.iov_base || window > 0x7f || mark(0x7f))
		return fail("setup");
	fill(iov.iov_base, 0, block);
	clock_gettime(CLOCK_MONOTONIC, &start);
	start.tv_sec++;
	start.tv_nsec = strtol(arg[1], NULL, 0) * 1000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL);

	if (window)
		mark(window);
	for (i = 0; i < nr; i++) {
		off_t pos = (off_t)(i * step % nr) * stride * block;

		if (pwritev2(fd, &iov, 1, pos, flags) != (ssize_t)block)
			return fail("I/O");
		if (each && sync_file_range(fd, pos, block, SYNC_FILE_RANGE_WAIT_BEFORE |
					    SYNC_FILE_RANGE_WRITE |
					    SYNC_FILE_RANGE_WAIT_AFTER))
			return fail("sync_file_range");
	}
	if (!each && fdatasync(fd))
		return fail("fdatasync");
	/* The last pages are dropped after their writeback ends. */
	usleep(5000);
	if (window)
		mark(window | 0x80);
	printf("%ld %ld\n", i, cached(fd, 0, nr * stride * block));
	return 0;
}

/*
 * Takes a CPU offline or online, and prints when that began and when it was done
 * (us, CLOCK_MONOTONIC). In a child, since nothing ends a task that waits for
 * ever in the kernel: exit status 2 if it is not done after SECONDS.
 */
static int switch_cpu(char **arg)
{
	struct timespec limit = { strtol(arg[2], NULL, 0), 0 };
	sigset_t done;
	int status;
	pid_t pid;

	sigemptyset(&done);
	sigaddset(&done, SIGCHLD);
	sigprocmask(SIG_BLOCK, &done, NULL);
	pid = fork();
	if (!pid) {
		long long begin = now_ns();
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%.10s/online", arg[0]);
		fd = open(path, O_WRONLY);
		if (fd < 0 || write(fd, arg[1], 1) != 1)
			exit(fail("write"));
		printf("%lld %lld\n", begin / 1000, now_ns() / 1000);
		exit(0);
	}
	if (pid < 0)
		return fail("fork");
	if (sigtimedwait(&done, NULL, &limit) < 0)
		return 2;
	return wait(&status) != pid || status;
}

/* Where the kernel has a symbol, or 0. */
static unsigned long long kernel_symbol(const char *wanted)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long address, found = 0;
	char name[512];

	while (f && !found && fscanf(f, "%llx %*c %511s%*[^\n]", &address, name) == 2)
		if (!strcmp(name, wanted))
			found = address;
	if (f)
		fclose(f);
	return found;
}

/* What we need of the header of an ELF file, and of one of its parts. */
struct elf_header {
	char ident[32];
	unsigned long long parts;
	char other[16];
	unsigned short nr_parts;
};

struct elf_part {
	unsigned int type, flags;
	unsigned long long offset, address, physical, length, size, align;
};

static int kernel_read(int kcore, unsigned long long address, void *to, size_t len)
{
	struct elf_header elf;
	struct elf_part part;
	int i;

	if (pread(kcore, &elf, sizeof(elf), 0) != sizeof(elf))
		return -1;
	for (i = 0; i < elf.nr_parts; i++) {
		if (pread(kcore, &part, sizeof(part), elf.parts + i * sizeof(part)) != sizeof(part))
			return -1;
		if (address < part.address || address + len > part.address + part.size)
			continue;
		if (pread(kcore, to, len, part.offset + address - part.address) == (ssize_t)len)
			return 0;
	}
	return -1;
}

/* Prints the first words of a per-CPU variable of the kernel, for each CPU. */
static int peek(char **arg)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), words = strtol(arg[1], NULL, 0), cpu, i;
	unsigned long long symbol = kernel_symbol(arg[0]);
	unsigned long long offsets = kernel_symbol("__per_cpu_offset");
	int kcore = open("/proc/kcore", O_RDONLY);

	if (kcore < 0 || !symbol || !offsets) {
		printf("no %s\n", kcore < 0 ? "/proc/kcore" : arg[0]);
		return 1;
	}
	for (cpu = 0; cpu < cpus; cpu++) {
		unsigned long long offset, word;

		if (kernel_read(kcore, offsets + cpu * sizeof(offset), &offset, sizeof(offset)))
			return fail("offset");
		printf("cpu %ld:", cpu);
		for (i = 0; i < words; i++) {
			if (kernel_read(kcore, symbol + offset + i * sizeof(word), &word,
					sizeof(word)))
				return fail("word");
			printf(" %llx", (unsigned long long)word);
		}
		printf("\n");
	}
	return 0;
}

/* A guest need not have ip(8). */
static int loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request))
		return fail("loopback");
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &request) ? fail("loopback") : 0;
}

int main(int argc, char **argv)
{
	if (argc == 8 && !strcmp(argv[1], "write"))
		return rw(1, argv + 2);
	if (argc == 8 && !strcmp(argv[1], "read"))
		return rw(0, argv + 2);
	if ((argc == 8 || argc == 9) && !strcmp(argv[1], "put"))
		return put(argv + 2, argc == 9 ? strtol(argv[8], NULL, 0) : 0);
	if (argc == 6 && !strcmp(argv[1], "lend"))
		return lend(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "nth"))
		return failing(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "gone"))
		return gone(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "flags"))
		return flags_of(argv[2], !strcmp(argv[3], "lazy"));
	if (argc == 5 && !strcmp(argv[1], "cached")) {
		int fd = open(argv[2], O_RDONLY);
		long nr = fd < 0 ? -1 : cached(fd, strtoll(argv[3], NULL, 0),
					       strtoull(argv[4], NULL, 0));

		if (nr < 0)
			return fail("cached");
		printf("%ld\n", nr);
		return 0;
	}
	if (argc == 7 && !strcmp(argv[1], "meet"))
		return meet(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "reread"))
		return reread(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "move"))
		return move(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "sample"))
		sample(strtol(argv[2], NULL, 0));
	if (argc == 3 && !strcmp(argv[1], "syncs"))
		return syncs(strtol(argv[2], NULL, 0));
	if (argc == 11 && !strcmp(argv[1], "count"))
		return count(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "opened"))
		return opened(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "cpu"))
		return switch_cpu(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "peek"))
		return peek(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "loopback"))
		return loopback();
	if (argc == 2 && !strcmp(argv[1], "poweroff")) {
		sync();
		reboot(RB_POWER_OFF);
		return fail("poweroff");
	}
	fprintf(stderr, "usage: see the head of guest/io.c\n");
	return 2;
}
