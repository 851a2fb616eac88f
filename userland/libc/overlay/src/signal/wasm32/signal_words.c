/* The signal actions and the mask of a program that has one thread. They are in this memory, where
 * the kernel reads them when it sends or hands out a signal, so that most changes need no call.
 * The kernel says in `owner` whose they are:
 *
 *   OWNER_KERNEL   not ours: every question and change is a call. So it is in programs with threads,
 *                  and with a kernel that does not know of these words.
 *   OWNER_PROGRAM  ours: there is nothing to call for.
 *   OWNER_PENDING  ours, but a signal is pending, which a change may let through or discard: it is
 *                  followed by a call.
 *
 * A change is stored before `owner` is read, and the kernel writes `owner` before it reads: at
 * least one of both sees the other's word. The kernel also looks again at the next system call or
 * tick, because processors may delay a store. */
#include <errno.h>
#include <signal.h>
#include "ksigaction.h"
#include "syscall.h"
#include "wasm_guest.h"

struct signal_words __signal_words;

enum { OWNER_KERNEL, OWNER_PROGRAM, OWNER_PENDING };

enum { SET_BYTES = 8, SIGNALS = 64 };

#define UNBLOCKABLE (1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1))

_Static_assert(sizeof(struct signal_words) == 16 + 16 * SIGNALS, "layout of the signal words");

static uint64_t load_set(const void *p)
{
	const uint32_t *words = p;
	return words[0] | (uint64_t)words[1] << 32;
}

static void store_set(void *p, uint64_t set)
{
	uint32_t *words = p;
	words[0] = set;
	words[1] = set >> 32;
}

/* Does the program own its words, so that this call is answered here? */
int __signal_words_answer(long set_bytes)
{
	return __signal_words.owner != OWNER_KERNEL && set_bytes == SET_BYTES;
}

/* rt_sigprocmask. 1 if the kernel must be told of the new mask. */
long __signal_words_mask(int how, const void *new, void *old)
{
	uint64_t before = __signal_words.mask, after = before;
	if (new) {
		uint64_t set = load_set(new);
		switch (how) {
		case SIG_BLOCK: after = before | set; break;
		case SIG_UNBLOCK: after = before & ~set; break;
		case SIG_SETMASK: after = set; break;
		default: return -EINVAL;
		}
		__signal_words.mask = after & ~UNBLOCKABLE;
	}
	if (old) store_set(old, before);
	return __signal_words.owner == OWNER_PENDING && before & ~after;
}

/* rt_sigaction. 1 if the kernel must be told of the new action. */
long __signal_words_action(unsigned signo, const struct k_sigaction *new, struct k_sigaction *old)
{
	if (signo - 1 >= SIGNALS) return -EINVAL;
	if (new && UNBLOCKABLE >> (signo - 1) & 1) return -EINVAL;
	struct signal_action *entry = &__signal_words.actions[signo - 1];
	uint64_t action = entry->handler_and_flags, mask = entry->mask;
	if (new) {
		entry->mask = load_set(new->mask);
		entry->handler_and_flags = (uint32_t)new->handler | (uint64_t)new->flags << 32;
	}
	if (old) {
		old->handler = (void (*)(int))(uint32_t)action;
		old->flags = action >> 32;
		store_set(old->mask, mask);
	}
	return new && __signal_words.owner == OWNER_PENDING;
}

/* The process id, or 0 if only the kernel knows. */
long __signal_words_pid(void)
{
	return __signal_words.owner == OWNER_KERNEL ? 0 : __signal_words.pid;
}
