/* locale: the locale in use, and what it says.
 *
 *	locale          the variables, as they count
 *	locale -a       names of locales
 *	locale -m       names of character sets
 *	locale [-ck] NAME...   values of keywords, or of whole categories
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "about.h"

static const char usage_text[] =
	"Usage: locale [-a | -m]\n  or:  locale [-ck] NAME...\n";

static const char *const categories[] = {
	"LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES",
	"LC_PAPER", "LC_NAME", "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION",
};

struct keyword {
	const char *category, *name;
	nl_item first;
	int count; /* so many items, one after the other */
};

static const struct keyword keywords[] = {
	{"LC_CTYPE", "charmap", CODESET, 1},
	{"LC_NUMERIC", "decimal_point", RADIXCHAR, 1},
	{"LC_NUMERIC", "thousands_sep", THOUSEP, 1},
	{"LC_TIME", "abday", ABDAY_1, 7},
	{"LC_TIME", "day", DAY_1, 7},
	{"LC_TIME", "abmon", ABMON_1, 12},
	{"LC_TIME", "mon", MON_1, 12},
	{"LC_TIME", "am_pm", AM_STR, 2},
	{"LC_TIME", "d_t_fmt", D_T_FMT, 1},
	{"LC_TIME", "d_fmt", D_FMT, 1},
	{"LC_TIME", "t_fmt", T_FMT, 1},
	{"LC_TIME", "t_fmt_ampm", T_FMT_AMPM, 1},
	{"LC_MONETARY", "currency_symbol", CRNCYSTR, 1},
	{"LC_MESSAGES", "yesexpr", YESEXPR, 1},
	{"LC_MESSAGES", "noexpr", NOEXPR, 1},
};

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value ? value : "";
}

static void print_variables(void)
{
	const char *all = variable("LC_ALL"), *lang = variable("LANG");

	printf("LANG=%s\n", lang);
	for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
		const char *own = variable(categories[i]);
		if (!*all && *own)
			printf("%s=%s\n", categories[i], own);
		else /* quoted: implied by another variable */
			printf("%s=\"%s\"\n", categories[i], *all ? all : *lang ? lang : "C");
	}
	printf("LC_ALL=%s\n", all);
}

static void print_keyword(const struct keyword *keyword, int with_name)
{
	const char *quote = with_name ? "\"" : "";

	if (with_name)
		printf("%s=\"", keyword->name);
	for (int i = 0; i < keyword->count; i++)
		printf("%s%s", i ? ";" : "", nl_langinfo(keyword->first + i));
	printf("%s\n", quote);
}

/* Prints a keyword or all of a category; returns whether there is one of this name. */
static int print_named(const char *name, int with_category, int with_name)
{
	int found = 0;

	for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
		int whole = !strcmp(name, keywords[i].category);
		if (!whole && strcmp(name, keywords[i].name))
			continue;
		if (with_category && !found)
			puts(keywords[i].category);
		print_keyword(&keywords[i], with_name);
		found = 1;
	}
	return found;
}

int main(int argc, char **argv)
{
	int option, status = 0, with_category = 0, with_name = 0;

	setlocale(LC_ALL, "");
	answer_about(argc, argv, "locale", usage_text);
	while ((option = getopt(argc, argv, "amck")) != -1) {
		switch (option) {
		case 'a':
			puts("C\nC.UTF-8\nPOSIX");
			return 0;
		case 'm':
			puts("ANSI_X3.4-1968\nUTF-8");
			return 0;
		case 'c':
			with_category = 1;
			break;
		case 'k':
			with_name = 1;
			break;
		default:
			fputs(usage_text, stderr);
			return 1;
		}
	}
	if (optind == argc)
		print_variables();
	for (; optind < argc; optind++)
		if (!print_named(argv[optind], with_category, with_name)) {
			fprintf(stderr, "locale: unknown name \"%s\"\n", argv[optind]);
			status = 1;
		}
	return fflush(stdout) ? 1 : status;
}
