/* Leaving a handler by siglongjmp restores the saved mask; longjmp leaves it. */
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include "check.h"

static sigjmp_buf back;
static jmp_buf back_plain;

static void jumping(int sig)
{
	siglongjmp(back, sig);
}

static void jumping_plain(int sig)
{
	longjmp(back_plain, sig);
}

static int is_blocked(int sig)
{
	sigset_t set;
	CHECK(!sigprocmask(SIG_BLOCK, 0, &set));
	return sigismember(&set, sig);
}

int main(void)
{
	signal(SIGUSR1, jumping);
	for (volatile int i = 0; i < 10; i++) {
		int value = sigsetjmp(back, 1);
		if (!value) {
			raise(SIGUSR1);
			CHECK(0);
		}
		CHECK(value == SIGUSR1 && !is_blocked(SIGUSR1));
	}

	if (!sigsetjmp(back, 0)) raise(SIGUSR1);
	CHECK(is_blocked(SIGUSR1));

	signal(SIGUSR2, jumping_plain);
	if (!setjmp(back_plain)) raise(SIGUSR2);
	CHECK(is_blocked(SIGUSR2));
	return 0;
}
