/* The tests' only tool: CHECK(x) ends the program with status 1 and the place. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, \
			        errno, strerror(errno)); \
			_Exit(1); \
		} \
	} while (0)

#endif
