/* Threads: making, joining and detaching them, what each has for itself, their stacks, and
 * that one which computes lets the others run. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <unistd.h>
#include "check.h"

enum { THREADS = 8 };

static _Thread_local int mine = 7;
static _Thread_local char zeros[100];

static void *use_what_is_mine(void *argument)
{
	int number = (long)argument;
	CHECK(mine == 7);
	CHECK(!zeros[50]);
	mine += number;
	zeros[50] = number;
	errno = number;
	usleep(1000);
	sched_yield();
	CHECK(errno == number);
	CHECK(mine == 7 + number);
	CHECK(zeros[50] == number);
	return (void *)(long)mine;
}

static void each_has_its_own_variables(void)
{
	pthread_t thread[THREADS];
	mine = 7;
	errno = 99;
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(thread + i, 0, use_what_is_mine, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++) {
		void *result;
		CHECK(!pthread_join(thread[i], &result));
		CHECK((long)result == 8 + i);
	}
	CHECK(mine == 7 && errno == 99 && !zeros[50]);
}

static pthread_key_t key;
static int destroyed;

static void destroy(void *value)
{
	destroyed += (long)value;
}

static void *use_key(void *argument)
{
	CHECK(!pthread_getspecific(key));
	CHECK(!pthread_setspecific(key, argument));
	sched_yield();
	CHECK(pthread_getspecific(key) == argument);
	return 0;
}

static void keys_end_with_their_thread(void)
{
	pthread_t thread[4];
	CHECK(!pthread_key_create(&key, destroy));
	for (long i = 0; i < 4; i++) CHECK(!pthread_create(thread + i, 0, use_key, (void *)(i + 1)));
	for (int i = 0; i < 4; i++) CHECK(!pthread_join(thread[i], 0));
	CHECK(destroyed == 10);
}

static volatile int flag;

static void *spin(void *argument)
{
	while (!flag) {
	}
	return 0;
}

static void *raise_flag(void *argument)
{
	flag = 1;
	return 0;
}

static void a_thread_that_spins_lets_others_run(void)
{
	pthread_t spinning, raising;
	CHECK(!pthread_create(&spinning, 0, spin, 0));
	CHECK(!pthread_create(&raising, 0, raise_flag, 0));
	CHECK(!pthread_join(spinning, 0));
	CHECK(!pthread_join(raising, 0));
}

static sem_t done;

static void *post(void *argument)
{
	sem_post(&done);
	return 0;
}

static void detached_threads_leave_nothing(void)
{
	pthread_attr_t attributes;
	CHECK(!sem_init(&done, 0, 0));
	CHECK(!pthread_attr_init(&attributes));
	CHECK(!pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED));
	size_t before = __builtin_wasm_memory_size(0);
	for (int i = 0; i < 300; i++) {
		pthread_t thread;
		int r = pthread_create(&thread, &attributes, post, 0);
		if (r == EAGAIN) { /* the one before has not quite ended */
			usleep(1000);
			i--;
			continue;
		}
		CHECK(!r);
		CHECK(!sem_wait(&done));
	}
	CHECK(__builtin_wasm_memory_size(0) - before < (64 << 20) / 65536);
}

static void *use_stack(void *argument)
{
	char large[400 << 10];
	memset(large, 1, sizeof large);
	pthread_attr_t attributes;
	void *low;
	size_t size;
	CHECK(!pthread_getattr_np(pthread_self(), &attributes));
	CHECK(!pthread_attr_getstack(&attributes, &low, &size));
	CHECK(large > (char *)low && large + sizeof large < (char *)low + size);
	CHECK(size >= (size_t)argument);
	return large[77] ? argument : 0;
}

static void stacks_are_as_large_as_asked_for(void)
{
	pthread_t thread;
	pthread_attr_t attributes;
	void *low;
	size_t size;
	CHECK(!pthread_attr_init(&attributes));
	CHECK(!pthread_attr_setstacksize(&attributes, 512 << 10));
	CHECK(!pthread_create(&thread, &attributes, use_stack, (void *)(512 << 10)));
	CHECK(!pthread_join(thread, 0));
	CHECK(!pthread_create(&thread, 0, use_stack, (void *)(1 << 20)));
	CHECK(!pthread_join(thread, 0));
	CHECK(!pthread_getattr_np(pthread_self(), &attributes));
	CHECK(!pthread_attr_getstack(&attributes, &low, &size));
	CHECK(size == 8 << 20 && (char *)&size > (char *)low && (char *)&size < (char *)low + size);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int initialised;

static void initialise(void)
{
	usleep(1000);
	initialised++;
}

static void *need_initialised(void *argument)
{
	pthread_once(&once, initialise);
	CHECK(initialised == 1);
	return argument;
}

static void once_is_once(void)
{
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(thread + i, 0, need_initialised, 0));
	for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(thread[i], 0));
}

static void *other_number(void *argument)
{
	CHECK(gettid() != getpid());
	CHECK(getpid() == (long)argument);
	return 0;
}

static void numbers_differ(void)
{
	pthread_t thread;
	CHECK(gettid() == getpid());
	CHECK(!pthread_create(&thread, 0, other_number, (void *)(long)getpid()));
	CHECK(!pthread_join(thread, 0));
}

int main(void)
{
	each_has_its_own_variables();
	each_has_its_own_variables();
	keys_end_with_their_thread();
	a_thread_that_spins_lets_others_run();
	detached_threads_leave_nothing();
	stacks_are_as_large_as_asked_for();
	once_is_once();
	numbers_differ();
	return 0;
}
