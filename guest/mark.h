/* SPDX-License-Identifier: GPL-2.0 */
/* What tells bench/hotspots.c where a window begins and ends. */

#include <string.h>
#include <sys/mman.h>

/*
 * Executes a NOP that bench/hotspots.c knows by its displacement. Made at run
 * time, since that cannot come from a register; it does nothing elsewhere.
 */
static int mark(unsigned int number)
{
	static unsigned char *code;
	unsigned int displacement = 0x6d617200 | number;

	if (!code) {
		code = mmap(NULL, 8, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (code == MAP_FAILED)
			return -1;
		memcpy(code, "\x0f\x1f\x80....\xc3", 8);
	}
	memcpy(code + 3, &displacement, sizeof(displacement));
	((void (*)(void))code)();
	return 0;
}
