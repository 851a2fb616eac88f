/* Long options; the work is done in getopt.c. */
#define _GNU_SOURCE
#include <getopt.h>
#include "getopt_parse.h"

int getopt_long(int argc, char *const *argv, const char *letters, const struct option *options,
	int *index)
{
	struct getopt_rules rules = { letters, options, index, 0 };
	return __getopt_parse(argc, argv, &rules);
}

int getopt_long_only(int argc, char *const *argv, const char *letters,
	const struct option *options, int *index)
{
	struct getopt_rules rules = { letters, options, index, 1 };
	return __getopt_parse(argc, argv, &rules);
}
