/* Options of a command line, short and long, as GNU systems read them: operands may
 * stand before options (unless POSIXLY_CORRECT is set), names may be abbreviated, and
 * complaints are worded as everybody knows them.
 *
 * An option that stands behind operands is moved in front of them when it is found, and
 * its argument when that is taken: argv[optind] is always the option at hand, with
 * `skipped` operands behind it. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "getopt_parse.h"

char *optarg;
int optind = 1, opterr = 1, optopt, __optreset;
weak_alias(__optreset, optreset);

/* The rest of a group of short options, and the operands behind that group. */
static char *group;
static int skipped;

enum order { PERMUTE, STOP_AT_OPERAND, OPERANDS_TOO };

static void move_up(char *const *argv, int to, int from)
{
	char **words = (char **)argv, *word = words[from];
	memmove(words + to + 1, words + to, (from - to) * sizeof *words);
	words[to] = word;
}

/* The next word is the argument of the option at hand. 0 if there is none. */
static int take_next_word(int argc, char *const *argv)
{
	int next = optind + skipped;
	if (next >= argc || !argv[next]) return 0;
	move_up(argv, optind, next);
	optarg = argv[optind++];
	return 1;
}

static int same_meaning(const struct option *a, const struct option *b)
{
	return a->has_arg == b->has_arg && a->flag == b->flag && a->val == b->val;
}

/* The option that `name` (of this length) means, in full or shortened. *others tells
 * that it may mean several. */
static const struct option *find_long(const struct option *options, const char *name,
	size_t length, int any_other, int *others)
{
	const struct option *found = 0;
	*others = 0;
	for (const struct option *o = options; o->name; o++) {
		if (strncmp(o->name, name, length)) continue;
		if (!o->name[length]) {
			*others = 0;
			return o;
		}
		if (!found) found = o;
		else if (any_other || !same_meaning(found, o)) *others = 1;
	}
	return found;
}

static void list_candidates(const char *program, const struct option *options,
	const struct option *found, const char *dashes, const char *word, size_t length,
	int any_other)
{
	fprintf(stderr, "%s: option '%s%s' is ambiguous; possibilities:", program, dashes, word);
	for (const struct option *o = options; o->name; o++)
		if (!strncmp(o->name, word, length) && (o == found || any_other || !same_meaning(found, o)))
			fprintf(stderr, " '%s%s'", dashes, o->name);
	fputc('\n', stderr);
}

/* The option at hand as a long one; -1 if it may be a short one. */
static int long_option(int argc, char *const *argv, const struct getopt_rules *rules,
	const char *dashes, int complain, int missing)
{
	char *word = argv[optind] + strlen(dashes);
	size_t length = strcspn(word, "=");
	int several;
	const struct option *o =
		find_long(rules->options, word, length, rules->long_only, &several);
	if (!o && rules->long_only && !dashes[1] && strchr(rules->letters, *word)) return -1;
	if (!o || several) {
		if (complain && several)
			list_candidates(argv[0], rules->options, o, dashes, word, length, rules->long_only);
		else if (complain)
			fprintf(stderr, "%s: unrecognized option '%s%s'\n", argv[0], dashes, word);
		optind++;
		optopt = 0;
		return '?';
	}
	optind++;
	if (word[length]) {
		if (!o->has_arg) {
			if (complain)
				fprintf(stderr, "%s: option '%s%s' doesn't allow an argument\n",
					argv[0], dashes, o->name);
			optopt = o->val;
			return '?';
		}
		optarg = word + length + 1;
	} else if (o->has_arg == required_argument && !take_next_word(argc, argv)) {
		if (complain)
			fprintf(stderr, "%s: option '%s%s' requires an argument\n",
				argv[0], dashes, o->name);
		optopt = o->val;
		return missing;
	}
	if (rules->index) *rules->index = o - rules->options;
	if (!o->flag) return o->val;
	*o->flag = o->val;
	return 0;
}

static int short_option(int argc, char *const *argv, const char *letters, int complain, int missing)
{
	char letter = *group++;
	const char *known = letter == ':' || letter == ';' ? 0 : strchr(letters, letter);
	if (!*group) {
		group = 0;
		optind++;
	}
	if (!known) {
		if (complain) fprintf(stderr, "%s: invalid option -- '%c'\n", argv[0], letter);
		optopt = (unsigned char)letter;
		return '?';
	}
	if (known[1] != ':') return (unsigned char)letter;
	if (group) {
		optarg = group;
		group = 0;
		optind++;
	} else if (known[2] != ':' && !take_next_word(argc, argv)) {
		if (complain)
			fprintf(stderr, "%s: option requires an argument -- '%c'\n", argv[0], letter);
		optopt = (unsigned char)letter;
		return missing;
	}
	return (unsigned char)letter;
}

int __getopt_parse(int argc, char *const *argv, const struct getopt_rules *given)
{
	struct getopt_rules rules = *given;
	enum order order = PERMUTE;
	optarg = 0;
	if (!optind || __optreset) {
		optind = 1;
		__optreset = 0;
		group = 0;
	}
	if (*rules.letters == '-' || *rules.letters == '+')
		order = *rules.letters++ == '-' ? OPERANDS_TOO : STOP_AT_OPERAND;
	else if (getenv("POSIXLY_CORRECT"))
		order = STOP_AT_OPERAND;
	int missing = *rules.letters == ':' ? ':' : '?';
	int complain = opterr && missing == '?';

	if (!group) {
		int next = optind;
		if (order == PERMUTE)
			while (next < argc && argv[next] && (argv[next][0] != '-' || !argv[next][1])) next++;
		if (next >= argc || !argv[next]) return -1;
		if (argv[next][0] != '-' || !argv[next][1]) {
			if (order != OPERANDS_TOO) return -1;
			optarg = argv[optind++];
			return 1;
		}
		skipped = next - optind;
		move_up(argv, optind, next);
		char *word = argv[optind];
		if (!strcmp(word, "--")) {
			optind++;
			return -1;
		}
		if (rules.options && word[1] == '-')
			return long_option(argc, argv, &rules, "--", complain, missing);
		if (rules.options && rules.long_only && (word[2] || !strchr(rules.letters, word[1]))) {
			int code = long_option(argc, argv, &rules, "-", complain, missing);
			if (code != -1) return code;
		}
		group = word + 1;
	}
	return short_option(argc, argv, rules.letters, complain, missing);
}

int getopt(int argc, char *const argv[], const char *letters)
{
	return __getopt_parse(argc, argv, &(struct getopt_rules){ .letters = letters });
}

weak_alias(getopt, __posix_getopt);
