// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts how often each kernel instruction is executed
 * between two marks that the guest sets (mark() in guest/io.c).
 *
 * usage: qemu ... -plugin hotspots.so,out=DIR
 *
 * A mark is a NOP of 7 bytes whose displacement holds MARK, the number of the
 * window, and one bit for its end. At the end DIR/NUMBER gets a line
 * "ADDRESS COUNT REPEATED FLAGS" for each instruction that was executed, and
 * "user COUNT 0 -" and "other COUNT 0 -" for what is not kernel text.
 *
 * Instructions, not translation blocks: a block can be left in its middle, by
 * a fault or for a device, and is then counted twice. One exact error is left:
 * an instruction that faults counts again when it is restarted.
 *
 * QEMU executes a string instruction once for each element, hardware retires
 * it once; so what follows the first is REPEATED. (One that is a jump's target
 * has no first.) FLAGS is "l" for a locked access, "-" for none.
 *
 * One virtual CPU only: the counters are not atomic.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * What is used of QEMU's plugin API, version 1. Distributions do not package
 * qemu-plugin.h.
 */
#define API_VERSION	1

typedef uint64_t qemu_plugin_id_t;

struct qemu_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};

enum qemu_plugin_op {
	QEMU_PLUGIN_INLINE_ADD_U64,
};

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int cpu, void *data),
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op,
						void *ptr, uint64_t imm);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t idx);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = API_VERSION;

/* Where x86_64 links its kernel, and room for the text of a large one. */
#define TEXT		0xffffffff81000000ULL
#define TEXT_SIZE	(64UL << 20)
#define KERNEL		0xffff800000000000ULL

/* As in guest/io.c. */
#define MARK		0x6d617200U
#define MARK_MASK	0xffffff00U
#define MARK_END	0x80U

#define INSN_LOCK	1

/* Sparse: only what was translated takes memory. */
static uint64_t *executed, *repeated;
static unsigned char *kind;
static uint64_t first = TEXT_SIZE, last;
static uint64_t user, other;
static const char *out;

static void begin(void)
{
	/* Not memset(), that would touch what is sparse. */
	madvise(executed, TEXT_SIZE * sizeof(*executed), MADV_DONTNEED);
	madvise(repeated, TEXT_SIZE * sizeof(*repeated), MADV_DONTNEED);
	user = 0;
	other = 0;
}

static void end(unsigned int id)
{
	char path[4096];
	uint64_t i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%u", out, id);
	f = fopen(path, "w");
	if (!f) {
		perror(path);
		return;
	}
	for (i = first; i <= last; i++)
		if (executed[i] || repeated[i])
			fprintf(f, "%llx %llu %llu %c\n",
				TEXT + (unsigned long long)i,
				(unsigned long long)executed[i],
				(unsigned long long)repeated[i],
				kind[i] & INSN_LOCK ? 'l' : '-');
	fprintf(f, "user %llu 0 -\nother %llu 0 -\n",
		(unsigned long long)user, (unsigned long long)other);
	if (fclose(f))
		perror(path);
}

static void marked(unsigned int cpu, void *data)
{
	unsigned int mark = (uintptr_t)data;

	(void)cpu;
	if (mark & MARK_END)
		end(mark & (MARK_END - 1));
	else
		begin();
}

/* The number of a mark, or -1 for any other instruction. */
static int mark_of(const unsigned char *code, size_t size)
{
	uint32_t mark;

	if (size != 7 || memcmp(code, "\x0f\x1f\x80", 3))
		return -1;
	memcpy(&mark, code + 3, sizeof(mark));
	return (mark & MARK_MASK) == MARK ? (int)(mark & ~MARK_MASK) : -1;
}

static bool has_modrm_memory(const unsigned char *code, size_t size)
{
	return size > 1 && code[1] >> 6 != 3;
}

static void classify(const unsigned char *code, size_t size, bool *string, bool *lock)
{
	bool rep = false;

	*lock = false;
	for (; size; code++, size--) {
		if (*code == 0xf0)
			*lock = true;
		else if (*code == 0xf2 || *code == 0xf3)
			rep = true;
		else if (!memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67", *code, 8) &&
			 *code >> 4 != 4)
			break;
	}
	/* MOVS, CMPS, STOS, LODS, SCAS, INS and OUTS. */
	*string = rep && size && ((*code >= 0xa4 && *code <= 0xa7) ||
				  (*code >= 0xaa && *code <= 0xaf) ||
				  (*code >= 0x6c && *code <= 0x6f));
	/* XCHG with memory locks without being told. */
	if (size && (*code == 0x86 || *code == 0x87) && has_modrm_memory(code, size))
		*lock = true;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const unsigned char *code = qemu_plugin_insn_data(insn);
		uint64_t at = qemu_plugin_insn_vaddr(insn), *counter;
		size_t size = qemu_plugin_insn_size(insn);
		bool string, lock;
		int mark;

		if (at < KERNEL) {
			counter = &user;
			mark = mark_of(code, size);
			if (mark >= 0)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, marked,
								       QEMU_PLUGIN_CB_NO_REGS,
								       (void *)(uintptr_t)mark);
		} else if (at < TEXT || at >= TEXT + TEXT_SIZE) {
			counter = &other;
		} else {
			at -= TEXT;
			if (at < first)
				first = at;
			if (at > last)
				last = at;
			classify(code, size, &string, &lock);
			kind[at] = lock ? INSN_LOCK : 0;
			counter = string && !i ? &repeated[at] : &executed[at];
		}
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   counter, 1);
	}
}

static void *sparse(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int refuse(const char *why)
{
	fprintf(stderr, "hotspots: %s\n", why);
	return -1;
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			int argc, char **argv)
{
	/* Later versions give instructions away differently, and would crash. */
	if (info->version.cur != API_VERSION)
		return refuse("needs a QEMU with version 1 of the plugin API (6.0 to 8.2)");
	if (!info->system_emulation || strcmp(info->target_name, "x86_64"))
		return refuse("counts in system emulation of x86_64 only");
	if (info->system.max_vcpus != 1)
		return refuse("counts one virtual CPU only (-smp 1)");
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return refuse("usage: -plugin hotspots.so,out=DIR");
	/* QEMU frees what it parsed. */
	out = strdup(argv[0] + 4);
	executed = sparse(TEXT_SIZE * sizeof(*executed));
	repeated = sparse(TEXT_SIZE * sizeof(*repeated));
	kind = sparse(TEXT_SIZE);
	if (!out || !executed || !repeated || !kind)
		return refuse("no memory");
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
