/* getconf: values of configuration variables, as the C library has them.
 *
 *	getconf [-v SPECIFICATION] NAME [PATH]
 *	getconf -a [PATH]
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "about.h"

static const char usage_text[] =
	"Usage: getconf [-v SPEC] VAR\n  or:  getconf [-v SPEC] PATH_VAR PATH\n"
	"  or:  getconf -a [PATH]\n";

enum kind { SYSTEM, FILE_SYSTEM, TEXT, CONSTANT };

struct variable {
	const char *name;
	enum kind kind;
	long key; /* of sysconf, pathconf or confstr; or the value itself */
};

static const struct variable variables[] = {
	{"AIO_LISTIO_MAX", SYSTEM, _SC_AIO_LISTIO_MAX},
	{"ARG_MAX", SYSTEM, _SC_ARG_MAX},
	{"ATEXIT_MAX", SYSTEM, _SC_ATEXIT_MAX},
	{"BC_BASE_MAX", SYSTEM, _SC_BC_BASE_MAX},
	{"BC_DIM_MAX", SYSTEM, _SC_BC_DIM_MAX},
	{"BC_SCALE_MAX", SYSTEM, _SC_BC_SCALE_MAX},
	{"BC_STRING_MAX", SYSTEM, _SC_BC_STRING_MAX},
	{"CHAR_BIT", CONSTANT, CHAR_BIT},
	{"CHAR_MAX", CONSTANT, CHAR_MAX},
	{"CHAR_MIN", CONSTANT, CHAR_MIN},
	{"CHILD_MAX", SYSTEM, _SC_CHILD_MAX},
	{"CLK_TCK", SYSTEM, _SC_CLK_TCK},
	{"COLL_WEIGHTS_MAX", SYSTEM, _SC_COLL_WEIGHTS_MAX},
	{"EXPR_NEST_MAX", SYSTEM, _SC_EXPR_NEST_MAX},
	{"FILESIZEBITS", FILE_SYSTEM, _PC_FILESIZEBITS},
	{"HOST_NAME_MAX", SYSTEM, _SC_HOST_NAME_MAX},
	{"INT_MAX", CONSTANT, INT_MAX},
	{"INT_MIN", CONSTANT, INT_MIN},
	{"IOV_MAX", SYSTEM, _SC_IOV_MAX},
	{"LINE_MAX", SYSTEM, _SC_LINE_MAX},
	{"LINK_MAX", FILE_SYSTEM, _PC_LINK_MAX},
	{"LOGIN_NAME_MAX", SYSTEM, _SC_LOGIN_NAME_MAX},
	{"LONG_BIT", CONSTANT, sizeof(long) * CHAR_BIT},
	{"LONG_MAX", CONSTANT, LONG_MAX},
	{"LONG_MIN", CONSTANT, LONG_MIN},
	{"MAX_CANON", FILE_SYSTEM, _PC_MAX_CANON},
	{"MAX_INPUT", FILE_SYSTEM, _PC_MAX_INPUT},
	{"MB_LEN_MAX", CONSTANT, MB_LEN_MAX},
	{"NAME_MAX", FILE_SYSTEM, _PC_NAME_MAX},
	{"NGROUPS_MAX", SYSTEM, _SC_NGROUPS_MAX},
	{"OPEN_MAX", SYSTEM, _SC_OPEN_MAX},
	{"PAGESIZE", SYSTEM, _SC_PAGESIZE},
	{"PAGE_SIZE", SYSTEM, _SC_PAGE_SIZE},
	{"PATH", TEXT, _CS_PATH},
	{"PATH_MAX", FILE_SYSTEM, _PC_PATH_MAX},
	{"PIPE_BUF", FILE_SYSTEM, _PC_PIPE_BUF},
	{"POSIX2_VERSION", SYSTEM, _SC_2_VERSION},
	{"RE_DUP_MAX", SYSTEM, _SC_RE_DUP_MAX},
	{"SCHAR_MAX", CONSTANT, SCHAR_MAX},
	{"SCHAR_MIN", CONSTANT, SCHAR_MIN},
	{"SHRT_MAX", CONSTANT, SHRT_MAX},
	{"SHRT_MIN", CONSTANT, SHRT_MIN},
	{"SSIZE_MAX", CONSTANT, SSIZE_MAX},
	{"STREAM_MAX", SYSTEM, _SC_STREAM_MAX},
	{"SYMLINK_MAX", FILE_SYSTEM, _PC_SYMLINK_MAX},
	{"SYMLOOP_MAX", SYSTEM, _SC_SYMLOOP_MAX},
	{"TTY_NAME_MAX", SYSTEM, _SC_TTY_NAME_MAX},
	{"TZNAME_MAX", SYSTEM, _SC_TZNAME_MAX},
	{"UCHAR_MAX", CONSTANT, UCHAR_MAX},
	{"USHRT_MAX", CONSTANT, USHRT_MAX},
	{"WORD_BIT", CONSTANT, sizeof(int) * CHAR_BIT},
	{"_AVPHYS_PAGES", SYSTEM, _SC_AVPHYS_PAGES},
	{"_NPROCESSORS_CONF", SYSTEM, _SC_NPROCESSORS_CONF},
	{"_NPROCESSORS_ONLN", SYSTEM, _SC_NPROCESSORS_ONLN},
	{"_PHYS_PAGES", SYSTEM, _SC_PHYS_PAGES},
	{"_POSIX_ARG_MAX", CONSTANT, _POSIX_ARG_MAX},
	{"_POSIX_CHOWN_RESTRICTED", FILE_SYSTEM, _PC_CHOWN_RESTRICTED},
	{"_POSIX_JOB_CONTROL", SYSTEM, _SC_JOB_CONTROL},
	{"_POSIX_NO_TRUNC", FILE_SYSTEM, _PC_NO_TRUNC},
	{"_POSIX_PATH_MAX", CONSTANT, _POSIX_PATH_MAX},
	{"_POSIX_PIPE_BUF", CONSTANT, _POSIX_PIPE_BUF},
	{"_POSIX_SAVED_IDS", SYSTEM, _SC_SAVED_IDS},
	{"_POSIX_THREADS", SYSTEM, _SC_THREADS},
	{"_POSIX_TIMERS", SYSTEM, _SC_TIMERS},
	{"_POSIX_VDISABLE", FILE_SYSTEM, _PC_VDISABLE},
	{"_POSIX_VERSION", SYSTEM, _SC_VERSION},
	{"_XOPEN_VERSION", SYSTEM, _SC_XOPEN_VERSION},
	{"GNU_LIBC_VERSION", TEXT, -1},
};

/* Prints the value, or "undefined"; returns 0, or -1 with errno set. */
static int print_value(const struct variable *variable, const char *path)
{
	char text[4096];
	long value = variable->key;

	errno = 0;
	switch (variable->kind) {
	case CONSTANT:
		break;
	case SYSTEM:
		value = sysconf((int)variable->key);
		break;
	case FILE_SYSTEM:
		value = pathconf(path, (int)variable->key);
		break;
	case TEXT:
		if (variable->key >= 0 && confstr((int)variable->key, text, sizeof text) > 0) {
			puts(text);
			return 0;
		}
		puts("undefined");
		return 0;
	}
	if (variable->kind != CONSTANT && value == -1) {
		if (errno != 0 && errno != EINVAL)
			return -1;
		puts("undefined");
		return 0;
	}
	printf("%ld\n", value);
	return 0;
}

static int usage(void)
{
	fputs(usage_text, stderr);
	return 2;
}

static int print_all(const char *path)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		printf("%-34s ", variables[i].name);
		if (print_value(&variables[i], path) < 0)
			puts("undefined");
	}
	return 0;
}

int main(int argc, char **argv)
{
	int option, all = 0;

	answer_about(argc, argv, "getconf", usage_text);
	while ((option = getopt(argc, argv, "av:")) != -1) {
		if (option == 'a')
			all = 1;
		else if (option != 'v') /* there is one programming environment */
			return usage();
	}
	argc -= optind;
	argv += optind;
	if (all)
		return argc > 1 ? usage() : print_all(argc ? argv[0] : "/");
	if (argc < 1 || argc > 2)
		return usage();
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		if (strcmp(variables[i].name, argv[0]) != 0)
			continue;
		if ((variables[i].kind == FILE_SYSTEM) != (argc == 2))
			return usage();
		if (print_value(&variables[i], argv[1]) < 0) {
			fprintf(stderr, "getconf: %s: %s\n", argv[1], strerror(errno));
			return 2;
		}
		return fflush(stdout) ? 2 : 0;
	}
	fprintf(stderr, "getconf: Unrecognized variable `%s'\n", argv[0]);
	return 2;
}
