// SPDX-License-Identifier: GPL-2.0
/*
 * dontcache - try out, use and watch uncached buffered I/O (RWF_DONTCACHE)
 *
 *	dontcache probe PATH...
 *	dontcache cp [-f] SOURCE TARGET
 *	dontcache stat [-i SECONDS] [-n TIMES] [FILE...]
 *	dontcache trace [-n LINES]
 *
 * Only libc. What is wrong is said with the file that it is about and the way out; the status is
 * then 1, or 2 if the command is wrong.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Headers of libc may be older. */
#define FLAG_DONTCACHE	0x00000080
#define FLAG_LAZY	0x00000200
#define NR_CACHESTAT	451

#define CHUNK		(1 << 20)
#define TRACING		"/sys/kernel/tracing"

static volatile sig_atomic_t stopped;

static int fail(const char *next, const char *format, ...)
{
	int error = errno;
	va_list args;

	fprintf(stderr, "error: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (error)
		fprintf(stderr, ": %s", strerror(error));
	fprintf(stderr, "\n  next: %s\n", next);
	return 1;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: dontcache probe PATH...\n"
		"       dontcache cp [-f] SOURCE TARGET\n"
		"       dontcache stat [-i SECONDS] [-n TIMES] [FILE...]\n"
		"       dontcache trace [-n LINES]\n");
	return 2;
}

static void stop(int signal)
{
	stopped = signal;
}

/* The first line of a file of /proc or /sys, without its end; false if there is none. */
static bool line_of(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(line, size, file);

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

/* A number from 1 to INT_MAX, or 0. */
static int natural(const char *text)
{
	char *end;
	long nr = strtol(text, &end, 10);

	return *end || end == text || nr < 1 || nr > INT_MAX ? 0 : nr;
}

/* The number of the disk that a file is on, or that it is: partitions have no bdi. */
static dev_t disk_of(const struct stat *st)
{
	dev_t dev = S_ISBLK(st->st_mode) ? st->st_rdev : st->st_dev;
	char path[128], line[64];
	unsigned int major, minor;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
	if (access(path, F_OK))
		return dev;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(dev), minor(dev));
	if (line_of(path, line, sizeof(line)) && sscanf(line, "%u:%u", &major, &minor) == 2)
		return makedev(major, minor);
	return dev;
}

/* Whether a file takes a flag. One byte is read, of an empty file none. */
static const char *takes(int fd, int flag)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	if (preadv2(fd, &iov, 1, 0, flag) >= 0)
		return "yes";
	return errno == EOPNOTSUPP ? "no" : strerror(errno);
}

static int probe_one(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[PATH_MAX], file[128];
	struct stat st;
	dev_t disk;

	if (fd < 0 || fstat(fd, &st))
		return fail("name a file, a directory or a block device that you may read",
			    "%s", path);
	if (S_ISDIR(st.st_mode)) {
		/* Any file there says what its filesystem does: one without a name. */
		close(fd);
		fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (fd < 0)
			return fail("name a file in it", "%s: no file can be made", path);
	} else if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		close(fd);
		errno = 0;
		return fail("name a file, a directory or a block device",
			    "%s is none of these", path);
	}
	printf("%s\n", path);
	printf("  RWF_DONTCACHE       %s\n", takes(fd, FLAG_DONTCACHE));
	printf("  RWF_DONTCACHE_LAZY  %s\n", takes(fd, FLAG_LAZY));
	close(fd);

	disk = disk_of(&st);
	snprintf(file, sizeof(file), "/sys/class/bdi/%u:%u/dontcache_policy",
		 major(disk), minor(disk));
	if (line_of(file, line, sizeof(line)) && strcmp(line, "default"))
		printf("  policy              %s (of device %u:%u)\n", line,
		       major(disk), minor(disk));
	else if (line_of("/proc/sys/vm/dontcache_policy", line, sizeof(line)))
		printf("  policy              %s\n", line);
	else
		printf("  policy              the kernel's own\n");
	snprintf(file, sizeof(file), "/sys/kernel/debug/bdi/%u:%u/dontcache",
		 major(disk), minor(disk));
	if (line_of(file, line, sizeof(line)))
		printf("  %s\n", line);
	return 0;
}

static int probe(int argc, char **argv)
{
	struct utsname name;
	int failed = 0;

	if (argc < 2)
		return usage();
	if (!uname(&name))
		printf("Linux %s\n", name.release);
	for (int nr = 1; nr < argc; nr++) {
		errno = 0;
		failed |= probe_one(argv[nr]);
	}
	return failed;
}

/* Writes all of it; false with errno. */
static bool write_all(int fd, const char *data, size_t size, off_t at, int flags)
{
	while (size) {
		struct iovec iov = { (void *)data, size };
		ssize_t written = pwritev2(fd, &iov, 1, at, flags);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		data += written;
		size -= written;
		at += written;
	}
	return true;
}

static const char *next_step(void)
{
	switch (errno) {
	case EOPNOTSUPP:
		return "-f copies it through the page cache";
	case ENOSPC:
	case EDQUOT:
		return "free some space there";
	default:
		return "see the kernel's log";
	}
}

/* Empty, or -1 with what is wrong said: what cannot be written is left as it is. */
static int open_target(const char *target, mode_t mode, bool force)
{
	int to = open(target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	bool made = to >= 0;

	if (to < 0 && errno == EEXIST)
		to = open(target, O_RDWR | O_CLOEXEC);
	if (to < 0) {
		fail("name a file that you may write and read", "%s", target);
		return -1;
	}
	if (!force && !strcmp(takes(to, FLAG_DONTCACHE), "no")) {
		if (made)
			unlink(target);
		errno = EOPNOTSUPP;
		fail(next_step(), "%s cannot be written", target);
		return -1;
	}
	/* Of a device there is nothing to cut off. */
	if (ftruncate(to, 0) && errno != EINVAL) {
		fail("name a file that you may write", "%s", target);
		return -1;
	}
	return to;
}

static int copy(const char *source, const char *target, bool force)
{
	int from = open(source, O_RDONLY | O_CLOEXEC), to = -1;
	int reads = FLAG_DONTCACHE, writes = FLAG_DONTCACHE;
	struct stat st, there;
	char *data;
	off_t at = 0;

	if (from < 0 || fstat(from, &st))
		return fail("name a file that you may read", "%s", source);
	if (S_ISDIR(st.st_mode)) {
		errno = 0;
		return fail("name a file: directories are not copied", "%s is a directory", source);
	}
	if (!stat(target, &there) && there.st_dev == st.st_dev && there.st_ino == st.st_ino) {
		errno = 0;
		return fail("name another target", "%s and %s are the same file", source, target);
	}
	data = malloc(CHUNK);
	if (!data)
		return fail("free some memory", "no memory for %d bytes", CHUNK);

	for (;;) {
		struct iovec iov = { data, CHUNK };
		ssize_t got = preadv2(from, &iov, 1, at, reads);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EOPNOTSUPP && reads && force) {
			reads = 0;
			continue;
		}
		if (got < 0)
			return fail(next_step(), "%s cannot be read at %lld", source,
				    (long long)at);
		/* Not before it is known that there is something to copy. */
		if (to < 0)
			to = open_target(target, st.st_mode & 0777, force);
		if (to < 0)
			return 1;
		if (!got)
			break;
		while (!write_all(to, data, got, at, writes)) {
			if (errno != EOPNOTSUPP || !writes || !force)
				return fail(next_step(), "%s cannot be written at %lld", target,
					    (long long)at);
			writes = 0;
		}
		at += got;
	}
	/* An error that comes later is of this copy all the same. */
	if (fsync(to) && errno != EINVAL && errno != EROFS)
		return fail("see the kernel's log: the copy is not whole", "%s", target);
	if (close(to))
		return fail("see the kernel's log: the copy is not whole", "%s", target);
	free(data);
	close(from);
	return 0;
}

static int cp(int argc, char **argv)
{
	bool force = argc > 1 && !strcmp(argv[1], "-f");

	errno = 0;
	return argc == 3 + force ? copy(argv[1 + force], argv[2 + force], force) : usage();
}

/* The counters of /proc/vmstat, in this order. */
static const char * const counters[] = {
	"dontcache_start", "dontcache_drop", "dontcache_retry", "dontcache_missed",
	"bio_task_complete", "nr_dirty", "nr_writeback",
};

#define COUNTERS	(sizeof(counters) / sizeof(counters[0]))
/* From here on what there is, and not how much has come. */
#define LEVELS		(COUNTERS - 2)

static bool read_counters(unsigned long *values)
{
	FILE *file = fopen("/proc/vmstat", "re");
	unsigned long value;
	bool found = false;
	char name[64];

	memset(values, 0, COUNTERS * sizeof(*values));
	while (file && fscanf(file, "%63s %lu", name, &value) == 2) {
		for (size_t nr = 0; nr < COUNTERS; nr++) {
			if (strcmp(name, counters[nr]))
				continue;
			values[nr] = value;
			found |= nr < LEVELS;
		}
	}
	if (file)
		fclose(file);
	return found;
}

/* How many pages of a file are cached, or -1. */
static long resident(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t range[2] = { 0, 0 }, found[5];
	struct stat st;
	long pages = -1;

	if (fd < 0)
		return -1;
	if (!syscall(NR_CACHESTAT, fd, range, found, 0)) {
		pages = found[0];
	} else if (!fstat(fd, &st) && st.st_size) {
		size_t size = st.st_size, page = sysconf(_SC_PAGESIZE);
		size_t nr = (size + page - 1) / page;
		void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		unsigned char *bits = malloc(nr);

		if (map != MAP_FAILED && bits && !mincore(map, size, bits)) {
			pages = 0;
			for (size_t at = 0; at < nr; at++)
				pages += bits[at] & 1;
		}
		free(bits);
		if (map != MAP_FAILED)
			munmap(map, size);
	}
	close(fd);
	return pages;
}

/* Of each device that has uncached pages, or had: its bound, footprint and pauses. */
static void print_devices(void)
{
	DIR *dir = opendir("/sys/kernel/debug/bdi");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		unsigned long value, bound = 0, footprint = 0, written = 0, waiting = 0;
		char path[PATH_MAX], line[256];
		FILE *file;

		snprintf(path, sizeof(path), "/sys/kernel/debug/bdi/%s/dontcache", entry->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "bound %lu", &value) == 1)
				bound += value;
			else if (sscanf(line, "footprint %lu", &value) == 1)
				footprint += value;
			else if (sscanf(line, "waiting %lu", &value) == 1)
				waiting += value;
			else if (sscanf(line, "written %lu", &value) == 1)
				written += value;
		}
		if (file)
			fclose(file);
		if (written)
			printf("  device %-10s bound %lu kB, footprint %lu kB, %lu writers wait\n",
			       entry->d_name, bound, footprint, waiting);
	}
	if (dir)
		closedir(dir);
}

static int stats(int argc, char **argv)
{
	unsigned long before[COUNTERS], now[COUNTERS];
	int every = 1, times = 0, option;

	while ((option = getopt(argc, argv, "+i:n:")) != -1) {
		int *value = option == 'i' ? &every : &times;

		if (option == '?')
			return usage();
		*value = natural(optarg);
		if (!*value)
			return usage();
	}
	errno = 0;
	for (int nr = optind; nr < argc; nr++)
		if (resident(argv[nr]) < 0)
			return fail("name files that you may read", "%s", argv[nr]);
	if (!read_counters(before)) {
		errno = 0;
		return fail("boot a kernel with CONFIG_DONTCACHE_RUST",
			    "/proc/vmstat has no dontcache counters");
	}
	printf("pages/s:  start     drop    retry   missed     bios    dirty writeback\n");
	for (int round = 0; !stopped && (!times || round < times); round++) {
		sleep(every);
		read_counters(now);
		printf("       ");
		for (size_t nr = 0; nr < COUNTERS; nr++)
			printf(" %8lu", nr < LEVELS ? (now[nr] - before[nr]) / every :
						      now[nr]);
		printf("\n");
		print_devices();
		for (int nr = optind; nr < argc; nr++)
			printf("  %s: %ld pages cached\n", argv[nr], resident(argv[nr]));
		fflush(stdout);
		memcpy(before, now, sizeof(now));
	}
	return 0;
}

static bool set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* "task-pid [cpu] flags seconds: event: fields": seconds, task, event and fields. */
static void print_event(const char *line)
{
	const char *cpu = strstr(line, " ["), *colon = cpu ? strstr(cpu, ": ") : NULL;
	const char *time = colon;

	if (!colon) {
		fputs(line, stdout);
		return;
	}
	while (time > line && time[-1] != ' ')
		time--;
	line += strspn(line, " ");
	printf("%.*s  %-20.*s %s", (int)(colon - time), time, (int)(cpu - line), line, colon + 2);
}

static int trace(int argc, char **argv)
{
	int lines = 0, option, failed = 0;
	char line[1024];
	FILE *pipe;

	while ((option = getopt(argc, argv, "+n:")) != -1) {
		if (option == '?')
			return usage();
		lines = natural(optarg);
		if (!lines)
			return usage();
	}
	if (optind < argc)
		return usage();
	errno = 0;
	if (access(TRACING "/events", F_OK))
		return fail(errno == EACCES ? "run it as root" :
			    "as root: mount -t tracefs none " TRACING, TRACING "/events");
	if (access(TRACING "/events/dontcache", F_OK))
		return fail("boot a kernel with CONFIG_DONTCACHE_RUST and tracepoints",
			    TRACING "/events/dontcache");
	/* An instance of its own: what others trace is left alone. */
	if (mkdir(TRACING "/instances/dontcache", 0700) && errno != EEXIST)
		return fail("run it as root", TRACING "/instances/dontcache");
	pipe = fopen(TRACING "/instances/dontcache/trace_pipe", "re");
	if (!pipe || !set(TRACING "/instances/dontcache/events/dontcache/enable", "1")) {
		failed = fail("end the other dontcache trace", TRACING "/instances/dontcache");
	} else {
		for (int nr = 0; !stopped && (!lines || nr < lines); nr++) {
			if (!fgets(line, sizeof(line), pipe))
				break;
			print_event(line);
			fflush(stdout);
		}
		set(TRACING "/instances/dontcache/events/dontcache/enable", "0");
	}
	if (pipe)
		fclose(pipe);
	rmdir(TRACING "/instances/dontcache");
	return failed;
}

int main(int argc, char **argv)
{
	/* Without SA_RESTART, or who waits for a line would wait on. */
	struct sigaction action = { .sa_handler = stop };

	if (argc < 2)
		return usage();
	if (!strcmp(argv[1], "stat") || !strcmp(argv[1], "trace")) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
	}
	argc--;
	argv++;
	if (!strcmp(argv[0], "probe"))
		return probe(argc, argv);
	if (!strcmp(argv[0], "cp"))
		return cp(argc, argv);
	if (!strcmp(argv[0], "stat"))
		return stats(argc, argv);
	if (!strcmp(argv[0], "trace"))
		return trace(argc, argv);
	return usage();
}
