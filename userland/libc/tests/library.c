/* Parts of the library that lean on the port: qsort, math, strings, time, users. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <fnmatch.h>
#include <grp.h>
#include <math.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

static int ascending(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static int by_high_half(const void *a, const void *b)
{
	return (*(const int *)a >> 16) - (*(const int *)b >> 16);
}

static void sorting(void)
{
	enum { N = 10000 };
	static int numbers[N];
	unsigned seed = 1;
	for (int i = 0; i < N; i++) numbers[i] = seed = seed * 69069 + 1;
	qsort(numbers, N, sizeof *numbers, ascending);
	for (int i = 1; i < N; i++) CHECK(numbers[i - 1] <= numbers[i]);
	for (int i = 0; i < N; i++) numbers[i] = i * 7919 % 100 << 16 | i;
	qsort(numbers, N, sizeof *numbers, by_high_half);
	for (int i = 1; i < N; i++) CHECK(numbers[i - 1] < numbers[i]);
	int key = numbers[1234];
	CHECK(*(int *)bsearch(&key, numbers, N, sizeof *numbers, ascending) == key);
}

static void numbers(void)
{
	volatile double two = 2, half = 2.5, negative = -2.5;
	CHECK(sqrt(two) * sqrt(two) - 2 < 1e-15 && floor(negative) == -3 && ceil(negative) == -2);
	CHECK(rint(half) == 2 && nearbyint(negative) == -2 && trunc(negative) == -2 && round(half) == 3);
	CHECK(fabs(negative) == 2.5 && copysign(two, negative) == -2 && fmod(7.5, 2) == 1.5);
	CHECK(pow(2, 0.5) == sqrt(2) && exp(0) == 1 && log(M_E) == 1 && sin(0) == 0);
	CHECK(fegetround() == FE_TONEAREST && fesetround(FE_TONEAREST) == 0);
	feclearexcept(FE_ALL_EXCEPT);
	feraiseexcept(FE_DIVBYZERO);
	CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO);
}

static void blocks(void)
{
	char source[300], target[300];
	for (size_t size = 0; size < 150; size++) {
		for (int i = 0; i < 300; i++) source[i] = i;
		memset(target, 99, sizeof target);
		CHECK(memcpy(target + 3, source + 5, size) == target + 3);
		for (int i = 0; i < 300; i++)
			CHECK(target[i] == (i >= 3 && i < 3 + (int)size ? source[i + 2] : 99));
		memmove(source + 2, source, size);
		for (size_t i = 0; i < size; i++) CHECK(source[i + 2] == (char)i);
		memmove(source, source + 2, size);
		for (size_t i = 0; i < size; i++) CHECK(source[i] == (char)i);
		CHECK(memset(target + 1, 'z', size) == target + 1);
		for (size_t i = 0; i < size; i++) CHECK(target[1 + i] == 'z');
		target[1 + size] = 0;
		CHECK(strlen(target + 1) == size && strchr(target + 1, 0) == target + 1 + size);
		CHECK(memchr(target + 1, 0, 200) == target + 1 + size);
		CHECK(memchr(target + 1, 0, -1) == target + 1 + size);
		CHECK(!memchr(target + 1, 0, size) && strnlen(target + 1, -1) == size);
		target[0] = 'y';
		CHECK(memrchr(target, 'y', size + 1) == target && !memrchr(target, 'x', size + 1));
		CHECK(!strchr(target + 1, 'y') && strchrnul(target + 1, 'y') == target + 1 + size);
	}
	for (size_t size = 1; size < 40; size++) {
		for (size_t at = 0; at < size; at++) {
			memset(source, 'a', size);
			memset(target, 'a', size);
			source[at] = 'b';
			target[at] = '\xff';
			if (at + 1 < size) source[at + 1] = 'c';
			CHECK(memcmp(source, target, size) < 0 && memcmp(target, source, size) > 0);
			CHECK(!memcmp(source, target, at) && memcmp(source + at, target + at, 1) < 0);
			CHECK(memchr(source, 'b', size) == source + at && memrchr(source, 'b', size) == source + at);
		}
	}
}

static void threads(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	CHECK(!pthread_mutex_lock(&mutex) && pthread_mutex_trylock(&mutex) == EBUSY);
	CHECK(!pthread_mutex_unlock(&mutex));
	sem_t semaphore;
	struct timespec soon;
	clock_gettime(CLOCK_REALTIME, &soon);
	if ((soon.tv_nsec += 20000000) >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
	CHECK(!sem_init(&semaphore, 0, 0) && sem_timedwait(&semaphore, &soon) == -1 && errno == ETIMEDOUT);
	CHECK(gettid() == getpid());
}

static void zones(void)
{
	time_t winter = 1705000000, summer = 1720000000;
	CHECK(!setenv("TZ", "EST5EDT", 1));
	CHECK(localtime(&winter)->tm_isdst == 0 && localtime(&summer)->tm_isdst == 1);
	CHECK(localtime(&winter)->tm_gmtoff == -5 * 3600);
	CHECK(!setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1));
	CHECK(localtime(&summer)->tm_gmtoff == 2 * 3600);
	CHECK(!unsetenv("TZ"));
}

int main(void)
{
	sorting();
	numbers();
	blocks();
	threads();
	zones();

	struct tm *tm = gmtime(&(time_t){ 4102444800 });
	char text[32];
	CHECK(strftime(text, sizeof text, "%F %T", tm) == 19 && !strcmp(text, "2100-01-01 00:00:00"));
	CHECK(sizeof(time_t) == 8 && time(0) > 1700000000);

	regex_t regex;
	CHECK(!regcomp(&regex, "^a+(b|c)*$", REG_EXTENDED) && !regexec(&regex, "aabcb", 0, 0, 0));
	CHECK(!regcomp(&regex, "^(a.)\\1x{,2}$", REG_EXTENDED));
	CHECK(!regexec(&regex, "ababx", 0, 0, 0) && regexec(&regex, "abacx", 0, 0, 0) == REG_NOMATCH);
	CHECK(!regcomp(&regex, "\\w\\d", REG_EXTENDED) && !regexec(&regex, "xd", 0, 0, 0));
	CHECK(!fnmatch("*.[ch]", "x.c", 0));
	errno = 0;
	CHECK(getpwuid(0) && !strcmp(getpwnam("root")->pw_name, "root") && getgrgid(0));
	CHECK(!getpwnam("nobody-has-this-name") && errno == 0);
	CHECK(!dlopen("libx.so", RTLD_NOW) && dlerror());
	return 0;
}
