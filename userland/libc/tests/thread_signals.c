/* Signals and threads: to one thread, to the process, waited for; cancellation. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

static volatile int handled;
static pthread_t handled_by;

static void handler(int signo)
{
	handled = signo;
	handled_by = pthread_self();
}

static volatile int asleep;

static void *sleep_until_signal(void *argument)
{
	struct timespec long_time = { 50, 0 };
	asleep = 1;
	CHECK(nanosleep(&long_time, 0) == -1 && errno == EINTR);
	return 0;
}

/* A signal that comes before the thread sleeps does not end its sleep, so there are more. */
static void signal_until_it_ends(pthread_t thread)
{
	while (pthread_tryjoin_np(thread, 0) == EBUSY) {
		pthread_kill(thread, SIGUSR1);
		usleep(5000);
	}
}

static pthread_t sleeper(void)
{
	pthread_t thread;
	asleep = 0;
	CHECK(!pthread_create(&thread, 0, sleep_until_signal, 0));
	while (!asleep) usleep(500);
	return thread;
}

static void a_signal_to_a_thread_is_handled_by_it(void)
{
	pthread_t thread = sleeper();
	signal_until_it_ends(thread);
	CHECK(handled == SIGUSR1 && pthread_equal(handled_by, thread));
}

static void a_signal_to_the_process_is_handled_by_the_first_thread(void)
{
	pthread_t thread = sleeper();
	handled = 0;
	CHECK(!kill(getpid(), SIGUSR1));
	CHECK(handled == SIGUSR1 && pthread_equal(handled_by, pthread_self()));
	signal_until_it_ends(thread);
}

static void a_signal_that_the_first_thread_blocks_is_handled_by_another(void)
{
	sigset_t wanted, before;
	pthread_t thread = sleeper();
	handled = 0;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &wanted, &before));
	CHECK(!kill(getpid(), SIGUSR1));
	while (!handled) usleep(500);
	CHECK(handled == SIGUSR1 && pthread_equal(handled_by, thread));
	signal_until_it_ends(thread);
	CHECK(!pthread_sigmask(SIG_SETMASK, &before, 0));
}

static void *wait_for_signal(void *set)
{
	int signo;
	CHECK(!sigwait(set, &signo));
	return (void *)(long)signo;
}

static void a_signal_that_all_block_can_be_waited_for(void)
{
	sigset_t wanted, before;
	pthread_t thread;
	void *signo;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR2);
	CHECK(!pthread_sigmask(SIG_BLOCK, &wanted, &before));
	CHECK(!pthread_create(&thread, 0, wait_for_signal, &wanted));
	usleep(2000);
	CHECK(!kill(getpid(), SIGUSR2));
	CHECK(!pthread_join(thread, &signo));
	CHECK((long)signo == SIGUSR2);
	CHECK(!pthread_sigmask(SIG_SETMASK, &before, 0));
}

static int cleaned;

static void clean(void *argument)
{
	cleaned++;
}

static void *pause_for_ever(void *argument)
{
	pthread_cleanup_push(clean, 0);
	asleep = 1;
	for (;;) pause();
	pthread_cleanup_pop(0);
	return 0;
}

static void *spin_for_ever(void *argument)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	asleep = 1;
	for (volatile int i = 0;; i++) {
	}
}

static void *refuse_for_a_while(void *argument)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
	asleep = 1;
	usleep(20000);
	cleaned += 10;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
	pthread_testcancel();
	cleaned += 100;
	return 0;
}

static void cancel(void *(*work)(void *))
{
	pthread_t thread;
	void *result;
	asleep = 0;
	CHECK(!pthread_create(&thread, 0, work, 0));
	while (!asleep) usleep(500);
	while (pthread_tryjoin_np(thread, &result) == EBUSY) {
		pthread_cancel(thread);
		usleep(5000);
	}
	CHECK(result == PTHREAD_CANCELED);
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGUSR1, &action, 0);
	a_signal_to_a_thread_is_handled_by_it();
	a_signal_to_the_process_is_handled_by_the_first_thread();
	a_signal_that_the_first_thread_blocks_is_handled_by_another();
	a_signal_that_all_block_can_be_waited_for();
	cancel(pause_for_ever);
	CHECK(cleaned == 1);
	cancel(spin_for_ever);
	cancel(refuse_for_a_while);
	CHECK(cleaned == 11);
	return 0;
}
