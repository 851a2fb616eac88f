/* A handler jumps out while the program computes: the jump is done at the next
 * system call at the latest. Jumps inside the handler are its own affair. */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include "check.h"

static sigjmp_buf back;

static void jumping(int sig)
{
	jmp_buf local;
	if (!setjmp(local)) longjmp(local, 1);
	siglongjmp(back, sig);
}

int main(void)
{
	signal(SIGALRM, jumping);
	for (volatile int i = 0; i < 5; i++) {
		int value = sigsetjmp(back, 1);
		if (!value) {
			struct itimerval timer = { .it_value.tv_usec = 20000 };
			CHECK(!setitimer(ITIMER_REAL, &timer, 0));
			for (;;) {
				for (volatile int turns = 0; turns < 20000000; turns++);
				getppid();
			}
		}
		sigset_t now;
		CHECK(value == SIGALRM && !sigprocmask(SIG_BLOCK, 0, &now) && !sigismember(&now, SIGALRM));
	}
	return 0;
}
