/* getopt and getopt_long: operands among options, abbreviations, and complaints. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>
#include "check.h"

static const struct option LONG[] = {
	{ "all", no_argument, 0, 'a' },
	{ "also", no_argument, 0, 'A' },
	{ "file", required_argument, 0, 'f' },
	{ "maybe", optional_argument, 0, 'm' },
	{ 0 },
};

/* Parse words; what was found is written to `seen`, operands behind a bar. */
static const char *seen(const char *letters, int only, const char *words)
{
	static char text[256], copy[256];
	char *argv[16] = { "prog" }, *out = text;
	int argc = 1, c;
	strcpy(copy, words);
	for (char *word = strtok(copy, " "); word; word = strtok(0, " ")) argv[argc++] = word;
	optind = 0;
	while ((c = only ? getopt_long_only(argc, argv, letters, LONG, 0)
			 : getopt_long(argc, argv, letters, LONG, 0)) != -1)
		out += sprintf(out, optarg ? "%c=%s " : "%c ", c == 1 ? '1' : c, optarg);
	out += sprintf(out, "|");
	while (optind < argc) out += sprintf(out, " %s", argv[optind++]);
	return text;
}

/* What parsing prints on standard error. */
static const char *complaint(const char *words)
{
	static char text[256];
	FILE *file = tmpfile();
	int kept = dup(2);
	dup2(fileno(file), 2);
	opterr = 1;
	seen("abf:", 0, words);
	opterr = 0;
	dup2(kept, 2);
	close(kept);
	rewind(file);
	text[fread(text, 1, sizeof text - 1, file)] = 0;
	fclose(file);
	return text;
}

#define SEEN(letters, words, expected) CHECK(!strcmp(seen(letters, 0, words), expected))
#define SAYS(words, expected) CHECK(!strcmp(complaint(words), expected))

int main(void)
{
	opterr = 0;
	SEEN("abf:", "-ab -f x y", "a b f=x | y");
	SEEN("abf:", "one -a two -bfx three", "a b f=x | one two three");
	SEEN("abf:", "one -f two three -a", "f=two a | one three");
	SEEN("+abf:", "-a one -b", "a | one -b");
	SEEN("-abf:", "one -b two", "1=one b 1=two |");
	SEEN("ab", "one -a -- -b two", "a | one -b two");
	SEEN("ab", "- -a", "a | -");
	SEEN("m::", "-mx -m y", "m=x m | y");
	SEEN("", "--file=x --file y --maybe --maybe=z w", "f=x f=y m m=z | w");
	SEEN("", "--fi x --alls", "f=x ? |");
	SEEN(":f:", "-f", ": |");
	CHECK(!strcmp(seen("ab", 1, "-all -a -file x"), "a a f=x |"));
	SAYS("-z", "prog: invalid option -- 'z'\n");
	SAYS("-f", "prog: option requires an argument -- 'f'\n");
	SAYS("--nope=1", "prog: unrecognized option '--nope=1'\n");
	SAYS("--file", "prog: option '--file' requires an argument\n");
	SAYS("--all=1", "prog: option '--all' doesn't allow an argument\n");
	SAYS("--al", "prog: option '--al' is ambiguous; possibilities: '--all' '--also'\n");
	return 0;
}
