// SPDX-License-Identifier: GPL-2.0
/*
 * A block device of the kernel's nbd driver whose server is this program, and a
 * load for it: what a CPU that goes offline waits for when requests on a device
 * end in uncached writes of the same machine.
 *
 * usage: nbd serve FILE CONNECTIONS FLAGS
 *        nbd load DEVICE CPUS DEPTH
 *
 * "serve" makes FILE the disk /dev/nbd0, with a TCP connection and a thread for
 * each hardware queue: writes and reads have FLAGS (RWF_*), and each write is
 * followed by fdatasync(). FILE has all of its blocks. Requests have an hour:
 * without a time-out of ours the driver gives up a connection after 30 s, and what
 * hung goes on.
 *
 * "load" has DEPTH threads a CPU with one O_DIRECT I/O at a time, each at a random
 * place: a CPU that leaves has as many requests of its own to wait for. On SIGTERM
 * it prints for each I/O when it began and how long it took (us, CLOCK_MONOTONIC).
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nbd.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define LARGE (16 * BLOCK)
/* The kernel makes larger requests than ours: it merges them, and reads ahead. */
#define MAX_REQUEST (256 * LARGE)

struct connection {
	pthread_t thread;
	int sock, file, flags, cpu;
};

struct record {
	long long start, took;
};

struct loader {
	pthread_t thread;
	int disk, cpu, seed;
	off_t size;
	struct record *records;
	size_t nr, room;
};

static int stopped;

static void die(const char *what)
{
	fprintf(stderr, "nbd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* Fails while the CPU is offline: then any other one will do. */
	sched_setaffinity(0, sizeof(set), &set);
}

/* All of it, or false at the end of the connection. */
static int transfer(ssize_t (*io)(int sock, void *buf, size_t len, int flags),
		    int sock, void *buf, size_t len)
{
	while (len) {
		ssize_t ret = io(sock, buf, len, MSG_NOSIGNAL);

		if (ret <= 0)
			return 0;
		buf = (char *)buf + ret;
		len -= ret;
	}
	return 1;
}

static ssize_t send_some(int sock, void *buf, size_t len, int flags)
{
	return send(sock, buf, len, flags);
}

/* 0, or a negative errno value. */
static int execute(struct connection *c, int command, off_t pos, struct iovec *iov)
{
	ssize_t ret = 0;

	switch (command) {
	case NBD_CMD_READ:
		ret = preadv2(c->file, iov, 1, pos, c->flags);
		break;
	case NBD_CMD_WRITE:
		ret = pwritev2(c->file, iov, 1, pos, c->flags);
		break;
	case NBD_CMD_FLUSH:
		break;
	default:
		return -EINVAL;
	}
	if (ret < 0)
		return -errno;
	if (command != NBD_CMD_FLUSH && ret != (ssize_t)iov->iov_len)
		return -EIO;
	return command != NBD_CMD_READ && fdatasync(c->file) ? -errno : 0;
}

static void *answer(void *arg)
{
	struct connection *c = arg;
	struct nbd_request request;
	struct nbd_reply reply = { .magic = htonl(NBD_REPLY_MAGIC) };
	char *buf = aligned_alloc(BLOCK, MAX_REQUEST);

	/* Once: pinned again after the CPU came back, it would be in the next one's way. */
	pin(c->cpu);
	while (transfer(recv, c->sock, &request, sizeof(request))) {
		int command = ntohl(request.type) & 0xffff;
		struct iovec iov = { .iov_base = buf, .iov_len = ntohl(request.len) };

		if (command == NBD_CMD_DISC)
			break;
		if (command != NBD_CMD_FLUSH && iov.iov_len > MAX_REQUEST) {
			errno = EMSGSIZE;
			die("request");
		}
		if (command == NBD_CMD_WRITE &&
		    !transfer(recv, c->sock, buf, iov.iov_len))
			break;
		reply.error = htonl(-execute(c, command, be64toh(request.from), &iov));
		memcpy(reply.handle, request.handle, sizeof(reply.handle));
		if (!transfer(send_some, c->sock, &reply, sizeof(reply)))
			break;
		if (command == NBD_CMD_READ && !reply.error &&
		    !transfer(send_some, c->sock, buf, iov.iov_len))
			break;
	}
	close(c->sock);
	return NULL;
}

static void loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &lo))
		die("lo");
	close(sock);
}

static int serve(char **arg)
{
	int flags = strtol(arg[2], NULL, 0), nr = strtol(arg[1], NULL, 0), i, one = 1;
	int file = open(arg[0], O_RDWR), disk = open("/dev/nbd0", O_RDWR);
	struct connection *connections = calloc(nr, sizeof(*connections));
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);
	struct stat st;
	int listener;

	if (file < 0 || disk < 0 || !connections || fstat(file, &st))
		die(arg[0]);
	/* Readahead would bring in pages that no write of the server made. */
	posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
	loopback_up();
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) ||
	    getsockname(listener, (struct sockaddr *)&address, &len) || listen(listener, nr))
		die("listen");
	if (ioctl(disk, NBD_SET_BLKSIZE, BLOCK) ||
	    ioctl(disk, NBD_SET_SIZE_BLOCKS, st.st_size / BLOCK) ||
	    ioctl(disk, NBD_SET_TIMEOUT, 3600) ||
	    ioctl(disk, NBD_SET_FLAGS, NBD_FLAG_HAS_FLAGS | NBD_FLAG_SEND_FLUSH |
				       NBD_FLAG_CAN_MULTI_CONN))
		die("/dev/nbd0");
	for (i = 0; i < nr; i++) {
		struct connection *c = &connections[i];
		int client = socket(AF_INET, SOCK_STREAM, 0);

		if (client < 0 || connect(client, (struct sockaddr *)&address, len))
			die("connect");
		c->sock = accept(listener, NULL, NULL);
		c->file = file;
		c->flags = flags;
		c->cpu = i;
		setsockopt(c->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (c->sock < 0 || ioctl(disk, NBD_SET_SOCK, client) ||
		    pthread_create(&c->thread, NULL, answer, c))
			die("connection");
	}
	/* Until a signal comes. */
	if (ioctl(disk, NBD_DO_IT) && errno != EINTR)
		die("NBD_DO_IT");
	return 0;
}

static long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void *do_io(void *arg)
{
	struct loader *l = arg;
	unsigned int seed = l->seed;
	char *buf = aligned_alloc(BLOCK, LARGE);

	memset(buf, l->cpu, LARGE);
	while (!__atomic_load_n(&stopped, __ATOMIC_RELAXED)) {
		unsigned int draw = rand_r(&seed);
		/* One of 8 is large, one of 4 is a read. */
		size_t len = draw & 0x70 ? BLOCK : LARGE;
		int write = draw & 0x300;
		off_t pos = rand_r(&seed) % (l->size / LARGE) * LARGE;
		struct record *r;
		ssize_t ret;

		/* The kernel forgets it when the CPU goes offline. */
		if (sched_getcpu() != l->cpu)
			pin(l->cpu);
		if (l->nr == l->room) {
			l->room = l->room ? 2 * l->room : 1024;
			l->records = realloc(l->records, l->room * sizeof(*r));
			if (!l->records)
				die("realloc");
		}
		r = &l->records[l->nr++];
		r->start = now_us();
		ret = write ? pwrite(l->disk, buf, len, pos) : pread(l->disk, buf, len, pos);
		r->took = now_us() - r->start;
		if (ret != (ssize_t)len)
			die(write ? "write" : "read");
	}
	return NULL;
}

static int load(char **arg)
{
	int disk = open(arg[0], O_RDWR | O_DIRECT), i, sig;
	int cpus = strtol(arg[1], NULL, 0), nr = cpus * strtol(arg[2], NULL, 0);
	off_t size = disk < 0 ? 0 : lseek(disk, 0, SEEK_END);
	struct loader *loaders = calloc(nr, sizeof(*loaders));
	sigset_t term;

	if (size < LARGE || !loaders)
		die(arg[0]);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	for (i = 0; i < nr; i++) {
		loaders[i].disk = disk;
		loaders[i].cpu = i % cpus;
		loaders[i].seed = i + 1;
		loaders[i].size = size;
		if (pthread_create(&loaders[i].thread, NULL, do_io, &loaders[i]))
			die("thread");
	}
	sigwait(&term, &sig);
	__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
	for (i = 0; i < nr; i++) {
		struct loader *l = &loaders[i];
		size_t j;

		pthread_join(l->thread, NULL);
		for (j = 0; j < l->nr; j++)
			printf("%lld %lld\n", l->records[j].start, l->records[j].took);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "serve"))
		return serve(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "load"))
		return load(argv + 2);
	fprintf(stderr, "usage: see the head of guest/nbd.c\n");
	return 2;
}
