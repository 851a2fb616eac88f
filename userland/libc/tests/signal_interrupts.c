/* A signal and a blocked call: EINTR without SA_RESTART, the result with it. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

static int pipe_ends[2];
static volatile int alarms;

static void on_alarm(int sig)
{
	alarms++;
	CHECK(write(pipe_ends[1], "x", 1) == 1);
}

static void alarm_soon(int flags)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval timer = { .it_value.tv_usec = 50000 };
	alarms = 0;
	CHECK(!sigaction(SIGALRM, &action, 0) && !setitimer(ITIMER_REAL, &timer, 0));
}

int main(void)
{
	char c;
	CHECK(!pipe(pipe_ends));

	alarm_soon(0);
	CHECK(read(pipe_ends[0], &c, 1) == -1 && errno == EINTR && alarms == 1);
	CHECK(read(pipe_ends[0], &c, 1) == 1);

	alarm_soon(SA_RESTART);
	CHECK(read(pipe_ends[0], &c, 1) == 1 && alarms == 1);

	alarm_soon(SA_RESTART);
	struct timespec second = { .tv_sec = 5 }, left;
	CHECK(nanosleep(&second, &left) == -1 && errno == EINTR && left.tv_sec == 4);
	CHECK(read(pipe_ends[0], &c, 1) == 1);

	alarm_soon(SA_RESTART);
	struct pollfd nothing = { .fd = -1 };
	CHECK(poll(&nothing, 1, 5000) == -1 && errno == EINTR && alarms == 1);

	alarm_soon(0);
	CHECK(pause() == -1 && errno == EINTR && alarms == 1);

	/* A handler runs while the program only computes. */
	alarm_soon(0);
	while (!alarms) __asm__ volatile ("" : : : "memory");
	return 0;
}
