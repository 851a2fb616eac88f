/* Constructors, arguments, environment, atexit order, a main with three parameters. */
#define _GNU_SOURCE
#include <sys/auxv.h>
#include <unistd.h>
#include "check.h"

static int constructed, exits;

__attribute__((constructor)) static void construct(void)
{
	constructed = getenv("PATH") != 0;
}

static void last(void) { CHECK(exits == 1); }
static void first(void) { exits++; }

int main(int argc, char **argv, char **environment)
{
	CHECK(constructed && argc >= 1 && !argv[argc]);
	CHECK(environment == environ);
	int found = 0;
	for (char **e = environment; *e; e++) found |= !strncmp(*e, "PATH=", 5);
	CHECK(found);
	CHECK(sysconf(_SC_PAGESIZE) == 4096 && getauxval(AT_PAGESZ) == 4096);
	CHECK(strstr(program_invocation_short_name, "start"));
	CHECK(!setenv("NEW", "value", 1) && !strcmp(getenv("NEW"), "value"));
	atexit(last);
	atexit(first);
	return 0;
}
