/* Errors, signals and bad expressions are told in the words of GNU systems. */
#include <regex.h>
#include <signal.h>
#include "check.h"

static int is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

int main(void)
{
	CHECK(is(strerror(ENOENT), "No such file or directory"));
	CHECK(is(strerror(ELOOP), "Too many levels of symbolic links"));
	CHECK(is(strerror(ENOTTY), "Inappropriate ioctl for device"));
	CHECK(is(strerror(0), "Success"));
	CHECK(is(strerror(4242), "Unknown error 4242"));
	CHECK(is(strerror(-1), "Unknown error -1"));
	CHECK(is(strsignal(SIGFPE), "Floating point exception"));
	CHECK(is(strsignal(SIGCHLD), "Child exited"));
	CHECK(is(strsignal(SIGRTMIN + 2), "Real-time signal 2"));
	CHECK(is(strsignal(99), "Unknown signal 99"));
	char text[64];
	CHECK(regerror(REG_EPAREN, 0, text, sizeof text) == 18 && is(text, "Unmatched ( or \\("));
	return 0;
}
