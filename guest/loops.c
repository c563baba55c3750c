// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that overwrite side by side, each in a closed loop: the next write
 * comes when the one before it is done. For bench/count.sh.
 *
 * usage: loops WINDOW OFFSET FLAGS FILE,BLOCK,NR,DEPTH,HOW[,ROUNDS]...
 *
 * Of each FILE, every second block of BLOCK bytes is written, NR in all, by DEPTH
 * processes. HOW is each (a write is done when its data are on the disk, by
 * sync_file_range()), sync (when fdatasync() says so) or end (when write()
 * returns; fdatasync() follows the last). The last FILE is the one that is
 * measured: its blocks are written once, those of others ROUNDS times, so that
 * each kernel has the same work, or again and again until then. Counted as WINDOW,
 * 0 warms up. Starts OFFSET us after a full second.
 * Prints the number of writes and of pages left cached, then of the last FILE,
 * in ns, the mean of its writes, half and 99 % of them, and the slowest. To stderr,
 * before and after WINDOW, how often each task was switched away from.
 */

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

#define MAX_ROLES	4

struct role {
	char file[64];
	char how[8];
	size_t block;
	long nr;
	long depth;
	/* How often each block is written; 0 goes on until the others are done. */
	long rounds;
	/* Of each block the last write, and how many there were: shared with the processes. */
	long long *took;
	long *writes;
};

/* Shared: how many processes that come to an end are at work, and pipes to say so. */
static long *at_work;
static int done[2], go[2];

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerrorname_np(errno) ?: "?");
	return 1;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(long long when)
{
	struct timespec at = { when / 1000000000, when % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int parse(const char *text, struct role *role)
{
	int end = 0;

	if (sscanf(text, "%63[^,],%zu,%ld,%ld,%7[a-z]%n,%ld%n", role->file, &role->block,
		   &role->nr, &role->depth, role->how, &end, &role->rounds, &end) < 5 ||
	    text[end] || !role->block || role->nr < 1 || role->depth < 1 || role->rounds < 0)
		return -1;
	role->took = shared(role->nr * sizeof(*role->took));
	role->writes = shared(role->depth * sizeof(*role->writes));
	return role->took && role->writes ? 0 : -1;
}

/* 1000003 is prime: no write is merged with another's. */
static off_t place(const struct role *role, long i)
{
	return (off_t)(i * 1000003 % role->nr) * 2 * role->block;
}

static int loop(const struct role *role, int flags, long first, long long start)
{
	struct iovec iov = { .iov_base = malloc(role->block), .iov_len = role->block };
	int fd = open(role->file, O_RDWR);
	long i;

	if (fd < 0 || !iov.iov_base)
		return fail(role->file);
	memset(iov.iov_base, 'x', role->block);
	sleep_until(start);
	for (i = first; !role->rounds || i < role->nr * role->rounds; i += role->depth) {
		off_t pos = place(role, i % role->nr);
		long long began = now_ns();

		if (pwritev2(fd, &iov, 1, pos, flags) != (ssize_t)role->block)
			return fail("write");
		if (!strcmp(role->how, "each") &&
		    sync_file_range(fd, pos, role->block, SYNC_FILE_RANGE_WAIT_BEFORE |
				    SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER))
			return fail("sync_file_range");
		if (!strcmp(role->how, "sync") && fdatasync(fd))
			return fail("fdatasync");
		role->took[i % role->nr] = now_ns() - began;
		role->writes[first]++;
		if (!role->rounds && !__atomic_load_n(at_work, __ATOMIC_RELAXED))
			break;
	}
	return fdatasync(fd) ? fail("fdatasync") : 0;
}

/* A process of ROLE, which ends when the window is over: its end is not to be counted. */
static int process(const struct role *role, int flags, long first, long long start)
{
	char failed = loop(role, flags, first, start);

	/* If it failed, too: others would repeat for good. */
	if (role->rounds)
		__atomic_sub_fetch(at_work, 1, __ATOMIC_RELAXED);
	if (write(done[1], &failed, 1) != 1)
		return 1;
	close(go[1]);
	return read(go[0], &failed, 1) != 0;
}

static long cached(const struct role *role)
{
	size_t length = role->nr * 2 * role->block, pages = length / 4096, i;
	unsigned char *resident = malloc(pages);
	int fd = open(role->file, O_RDONLY);
	void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
	long nr = 0;

	if (!resident || map == MAP_FAILED || mincore(map, length, resident))
		return -1;
	for (i = 0; i < pages; i++)
		nr += resident[i] & 1;
	return nr;
}

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

static void print_latencies(struct role *role)
{
	long long sum = 0;
	long i;

	qsort(role->took, role->nr, sizeof(*role->took), compare);
	for (i = 0; i < role->nr; i++)
		sum += role->took[i];
	printf(" %lld %lld %lld %lld", sum / role->nr, role->took[role->nr / 2],
	       role->took[role->nr * 99 / 100], role->took[role->nr - 1]);
}

static void print_switches(const char *when, unsigned int window)
{
	DIR *tasks = opendir("/proc");
	struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		char path[sizeof(task->d_name) + 16], line[128], name[64] = "?";
		long sum = 0, nr;
		FILE *status;

		snprintf(path, sizeof(path), "/proc/%s/status", task->d_name);
		status = isdigit(task->d_name[0]) ? fopen(path, "r") : NULL;
		if (!status)
			continue;
		while (fgets(line, sizeof(line), status)) {
			if (sscanf(line, "Name: %63s", name) == 1)
				continue;
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &nr) == 1 ||
			    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &nr) == 1)
				sum += nr;
		}
		fclose(status);
		fprintf(stderr, "%s %u switches %ld %s\n", when, window, sum, name);
	}
	if (tasks)
		closedir(tasks);
}

int main(int argc, char **argv)
{
	struct role roles[MAX_ROLES] = {};
	int nr_roles = argc - 4, flags, failed = 0, i;
	long left = 0, writes = 0, processes = 0, nr;
	unsigned int window;
	long long start;
	char one;

	if (nr_roles < 1 || nr_roles > MAX_ROLES) {
		fprintf(stderr, "usage: see the head of guest/loops.c\n");
		return 2;
	}
	window = strtoul(argv[1], NULL, 0);
	flags = strtol(argv[3], NULL, 0);
	for (i = 0; i < nr_roles; i++) {
		roles[i].rounds = i == nr_roles - 1;
		if (parse(argv[4 + i], &roles[i]))
			return fail(argv[4 + i]);
	}
	at_work = shared(sizeof(*at_work));
	if (window > 0x7f || mark(0x7f) || !at_work || pipe(done) || pipe(go))
		return fail("setup");
	for (i = 0; i < nr_roles; i++)
		*at_work += roles[i].rounds ? roles[i].depth : 0;

	start = (now_ns() / 1000000000 + 2) * 1000000000 + strtoll(argv[2], NULL, 0) * 1000;
	for (i = 0; i < nr_roles; i++)
		for (nr = 0; nr < roles[i].depth; nr++) {
			pid_t pid = fork();

			if (pid < 0)
				return fail("fork");
			if (!pid)
				_exit(process(&roles[i], flags, nr, start));
			processes++;
		}
	if (window)
		print_switches("before", window);
	sleep_until(start - 1000000);
	if (window)
		mark(window);
	for (; processes && read(done[0], &one, 1) == 1; processes--)
		failed |= one;
	/* The last pages are dropped after their writeback ends. */
	usleep(5000);
	if (window)
		mark(window | 0x80);
	if (window)
		print_switches("after", window);
	close(go[1]);
	while (wait(&i) > 0)
		failed |= i;
	if (failed)
		return 1;

	for (i = 0; i < nr_roles; i++) {
		for (nr = 0; nr < roles[i].depth; nr++)
			writes += roles[i].writes[nr];
		left += cached(&roles[i]);
	}
	printf("%ld %ld", writes, left);
	print_latencies(&roles[nr_roles - 1]);
	printf("\n");
	return 0;
}
