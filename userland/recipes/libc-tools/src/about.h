/* What every program here answers to --help and --version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void answer_about(int argc, char **argv, const char *name, const char *usage)
{
	if (argc != 2)
		return;
	if (!strcmp(argv[1], "--help"))
		fputs(usage, stdout);
	else if (!strcmp(argv[1], "--version"))
		printf("%s (wasmsand libc-tools) 1\n", name);
	else
		return;
	exit(fflush(stdout) ? 1 : 0);
}
