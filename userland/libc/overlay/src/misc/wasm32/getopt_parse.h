/* What getopt and getopt_long share. */
#include <features.h>

struct option;

struct getopt_rules {
	const char *letters;
	const struct option *options; /* long ones, or 0 */
	int *index;                   /* where to say which of these was found, or 0 */
	int long_only;                /* one dash is enough for a long option */
};

hidden int __getopt_parse(int argc, char *const *argv, const struct getopt_rules *rules);
