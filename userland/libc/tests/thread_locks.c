/* What threads wait for each other with, and that the heap is theirs together. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

static void together(int count, void *(*work)(void *))
{
	pthread_t thread[16];
	for (long i = 0; i < count; i++) CHECK(!pthread_create(thread + i, 0, work, (void *)i));
	for (int i = 0; i < count; i++) CHECK(!pthread_join(thread[i], 0));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile int total, turn;

static void *count(void *number)
{
	for (int i = 0; i < 2000; i++) {
		CHECK(!pthread_mutex_lock(&mutex));
		int seen = total;
		if (i % 100 == 0) sched_yield();
		total = seen + 1;
		CHECK(!pthread_mutex_unlock(&mutex));
	}
	return 0;
}

static void *take_turns(void *number)
{
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != (long)number) pthread_cond_wait(&changed, &mutex);
		turn = (turn + 1) % 3;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}

static struct timespec from_now(clockid_t clock, long milliseconds)
{
	struct timespec when;
	clock_gettime(clock, &when);
	when.tv_nsec += milliseconds * 1000000;
	when.tv_sec += when.tv_nsec / 1000000000;
	when.tv_nsec %= 1000000000;
	return when;
}

static void *try_locked(void *number)
{
	struct timespec limit = from_now(CLOCK_REALTIME, 10);
	CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
	CHECK(pthread_mutex_timedlock(&mutex, &limit) == ETIMEDOUT);
	return 0;
}

static void waits_end_after_their_time(void)
{
	sem_t empty;
	struct timespec limit = from_now(CLOCK_REALTIME, 10);
	CHECK(!pthread_mutex_lock(&mutex));
	CHECK(pthread_cond_timedwait(&changed, &mutex, &limit) == ETIMEDOUT);
	together(1, try_locked);
	CHECK(!pthread_mutex_unlock(&mutex));
	CHECK(!sem_init(&empty, 0, 0));
	limit = from_now(CLOCK_REALTIME, 10);
	CHECK(sem_timedwait(&empty, &limit) == -1 && errno == ETIMEDOUT);
}

static sem_t items, room;
static int sent, received;

static void *produce(void *number)
{
	for (int i = 1; i <= 100; i++) {
		sem_wait(&room);
		pthread_mutex_lock(&mutex);
		sent += i;
		pthread_mutex_unlock(&mutex);
		sem_post(&items);
	}
	return 0;
}

static void *consume(void *number)
{
	for (int i = 1; i <= 100; i++) {
		sem_wait(&items);
		received += i;
		sem_post(&room);
	}
	return 0;
}

static void *produce_or_consume(void *number)
{
	return number ? produce(number) : consume(number);
}

static pthread_barrier_t barrier;
static int last_ones;

static void *meet(void *number)
{
	for (int i = 0; i < 20; i++)
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) last_ones++;
	return 0;
}

static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
static int left_page, right_page;

static void *read_or_write(void *number)
{
	for (int i = 0; i < 200; i++) {
		if (number) {
			pthread_rwlock_rdlock(&book);
			CHECK(left_page == right_page);
		} else {
			pthread_rwlock_wrlock(&book);
			left_page++;
			sched_yield();
			right_page++;
		}
		pthread_rwlock_unlock(&book);
	}
	return 0;
}

static void *use_heap(void *number)
{
	unsigned seed = (long)number + 1;
	unsigned char *block[64] = { 0 };
	size_t size[64];
	for (int i = 0; i < 10000; i++) {
		int k = rand_r(&seed) % 64;
		unsigned char tag = (long)number * 64 + k;
		if (block[k])
			for (size_t at = 0; at < size[k]; at += 97) CHECK(block[k][at] == tag);
		free(block[k]);
		size[k] = rand_r(&seed) % (i % 50 ? 900 : 200000) + 1;
		block[k] = malloc(size[k]);
		CHECK(block[k]);
		memset(block[k], tag, size[k]);
	}
	for (int k = 0; k < 64; k++) free(block[k]);
	return 0;
}

static void *use_mappings(void *number)
{
	for (int i = 0; i < 20; i++) {
		size_t size = 256 << 10;
		char *area = mmap(0, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
		CHECK(area != MAP_FAILED && !area[size - 1]);
		memset(area, (long)number + 1, size);
		sched_yield();
		for (size_t at = 0; at < size; at += 4096) CHECK(area[at] == (long)number + 1);
		CHECK(!munmap(area, size));
	}
	return 0;
}

static void *print(void *number)
{
	for (int i = 0; i < 100; i++) fprintf((FILE *)stdout, "%s", "");
	flockfile(stdout);
	sched_yield();
	funlockfile(stdout);
	return 0;
}

int main(void)
{
	together(8, count);
	CHECK(total == 16000);
	together(3, take_turns);
	waits_end_after_their_time();
	sem_init(&room, 0, 3);
	sem_init(&items, 0, 0);
	together(2, produce_or_consume);
	CHECK(sent == 5050 && received == 5050);
	pthread_barrier_init(&barrier, 0, 4);
	together(4, meet);
	CHECK(last_ones == 20);
	together(4, read_or_write);
	together(8, use_heap);
	together(4, use_mappings);
	together(4, print);
	return 0;
}
