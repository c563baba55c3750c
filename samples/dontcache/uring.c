// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a file by io_uring, 32 requests at a time, and leaves nothing of it in the page cache.
 *
 *	uring FILE MEBIBYTES
 *
 * Two things are to be known: a file that does not support the flag says EOPNOTSUPP, in the result
 * of each request; and a write may be short, as any.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE	0x80
#endif

#define DEPTH	32
#define BLOCK	(128 << 10)

static void prepare(struct io_uring *ring, int fd, const char *data, long nr)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_write(sqe, fd, data, BLOCK, (off_t)nr * BLOCK);
	sqe->rw_flags = RWF_DONTCACHE;
	io_uring_sqe_set_data64(sqe, nr);
}

int main(int argc, char **argv)
{
	long blocks = argc == 3 ? atol(argv[2]) * ((1 << 20) / BLOCK) : 0, next = 0, done = 0;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	char *data = malloc(BLOCK);
	int fd, error;

	if (blocks < 1 || !data) {
		fprintf(stderr, "usage: uring FILE MEBIBYTES\n");
		return 2;
	}
	memset(data, 'x', BLOCK);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	error = fd < 0 ? -errno : io_uring_queue_init(DEPTH, &ring, 0);
	while (!error && done < blocks) {
		while (next < blocks && next - done < DEPTH)
			prepare(&ring, fd, data, next++);
		error = io_uring_submit_and_wait(&ring, 1);
		if (error < 0)
			break;
		error = io_uring_wait_cqe(&ring, &cqe);
		if (error)
			break;
		/* The rest of a short write would be asked for again; here it is an error. */
		if (cqe->res != BLOCK)
			error = cqe->res < 0 ? cqe->res : -EIO;
		io_uring_cqe_seen(&ring, cqe);
		done++;
	}
	/* When that returns, the data are on stable storage, and their pages are gone soon. */
	if (!error && fsync(fd))
		error = -errno;
	if (error) {
		fprintf(stderr, "error: %s: %s\n", argv[1], strerror(-error));
		if (error == -EOPNOTSUPP)
			fprintf(stderr, "  next: name a file on XFS, ext4 or a block device\n");
		return 1;
	}
	return 0;
}
