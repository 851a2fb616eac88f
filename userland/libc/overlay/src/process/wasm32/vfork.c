/* vfork without a second memory: the kernel makes an embryo child, and this
 * program's next system calls act on it until it executes a program or exits.
 * That call returns the child's process id, and we jump back to where vfork was
 * called, now as the parent. vfork() is a macro (bits/vfork.h), because only a
 * setjmp in the caller's own frame can be returned to. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include "syscall.h"
#include "wasm_guest.h"
#undef vfork

static struct __jmp_buf_tag *maker PER_THREAD;
static jmp_buf outer_frame PER_THREAD, refused_frame PER_THREAD;
int __embryo_pid PER_THREAD;

long __embryo_begin(struct __jmp_buf_tag *frame)
{
	if (maker) return -EAGAIN;
	long r = __syscall(SYS_clone, CLONE_VM|CLONE_VFORK|SIGCHLD, 0, 0, 0, 0);
	if (!r) maker = frame;
	return r;
}

void __embryo_end(long pid)
{
	struct __jmp_buf_tag *frame = maker;
	if (!frame) return;
	maker = 0;
	__embryo_pid = pid;
	longjmp(frame, 1);
}

/* A vfork inside an embryo is refused, and must not spoil the outer one's frame. */
struct __jmp_buf_tag *__vfork_frame(void)
{
	return maker ? refused_frame : outer_frame;
}

int __vfork_result(int jumped)
{
	if (jumped) return __embryo_pid;
	return __syscall_ret(__embryo_begin(outer_frame));
}

/* Reached only without <unistd.h> or through a pointer. */
pid_t vfork(void)
{
	errno = ENOSYS;
	return -1;
}
