/* iconv: converts text from one character encoding to another.
 *
 *	iconv [-cs] [-f FROM] [-t TO] [-o FILE] [FILE...]
 *	iconv -l
 *
 * A character that cannot be converted is an error, or left out (-c, //IGNORE), or replaced
 * (//TRANSLIT).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "about.h"

static const char usage_text[] =
	"Usage: iconv [-cs] [-f ENCODING] [-t ENCODING] [-o FILE] [FILE...]\n"
	"  or:  iconv -l\n";

enum { BUFFER_BYTES = 65536, LONGEST_CHARACTER = 8 };
enum unknown { FAILS, IS_LEFT_OUT, IS_REPLACED };

static enum unknown unknown = FAILS;
static int quiet;
static iconv_t converter, decoder; /* from one to the other; to see where a character ends */
static FILE *output;
static unsigned long long consumed; /* bytes of the current input */

static const char *const encodings =
	"ASCII ISO-646-US US-ASCII\nUTF-8\nUTF-16 UTF-16BE UTF-16LE\nUTF-32 UTF-32BE UTF-32LE\n"
	"UCS-2 UCS-2BE UCS-2LE\nUCS-4 UCS-4BE UCS-4LE WCHAR_T\n"
	"ISO-8859-1 LATIN1\nISO-8859-2 LATIN2\nISO-8859-3\nISO-8859-4\nISO-8859-5\nISO-8859-6\n"
	"ISO-8859-7\nISO-8859-8\nISO-8859-9 LATIN5\nISO-8859-10\nISO-8859-11 TIS-620\n"
	"ISO-8859-13\nISO-8859-14\nISO-8859-15 LATIN9\nISO-8859-16\n"
	"CP1250\nCP1251\nCP1252\nCP1253\nCP1254\nCP1255\nCP1256\nCP1257\nCP1258\n"
	"CP437\nCP850\nCP866\nIBM1047\nKOI8-R\nKOI8-U\n"
	"EUC-JP\nSHIFT_JIS SJIS\nISO-2022-JP\nGB18030\nGBK CP936\nGB2312 EUC-CN\nBIG5\nEUC-KR";

/* Converts as much as it can and writes it. Returns what stopped it: an errno, or 0. */
static int convert_some(char **from, size_t *length)
{
	static char buffer[BUFFER_BYTES];
	char *to = buffer;
	size_t room = sizeof buffer, before = *length;
	int error = iconv(converter, from, length, &to, &room) == (size_t)-1 ? errno : 0;

	fwrite(buffer, 1, sizeof buffer - room, output);
	consumed += before - *length;
	return error;
}

/* How long the character is that cannot be converted; 1 if it is none. */
static size_t character_length(const char *text, size_t length)
{
	uint32_t character[2];

	for (size_t bytes = 1; bytes <= length && bytes <= LONGEST_CHARACTER; bytes++) {
		char *from = (char *)text, *to = (char *)character;
		size_t left = bytes, room = sizeof character;

		iconv(decoder, 0, 0, 0, 0);
		if (iconv(decoder, &from, &left, &to, &room) == 0)
			return bytes;
	}
	return 1;
}

static void write_replacement(void)
{
	char text[] = "?", *from = text;
	size_t length = 1;
	unsigned long long position = consumed;

	convert_some(&from, &length);
	consumed = position;
}

/* Converts what is in the buffer; returns the bytes left over, or -1 after a message. */
static long convert(char *buffer, size_t length, int last)
{
	char *from = buffer;

	while (length) {
		int error = convert_some(&from, &length);

		if (error == EILSEQ && unknown == FAILS) {
			if (!quiet)
				fprintf(stderr, "iconv: illegal input sequence at position %llu\n",
					consumed);
			return -1;
		}
		if (error == EILSEQ) {
			size_t skipped = character_length(from, length);

			if (unknown == IS_REPLACED)
				write_replacement();
			from += skipped;
			length -= skipped;
			consumed += skipped;
		} else if (error == EINVAL && !last) {
			break;
		} else if (error == EINVAL) {
			if (unknown == IS_LEFT_OUT)
				return 0;
			if (!quiet)
				fputs("iconv: incomplete character or shift sequence at end of buffer\n",
				      stderr);
			return -1;
		}
	}
	memmove(buffer, from, length);
	return (long)length;
}

static int convert_file(const char *name)
{
	static char buffer[BUFFER_BYTES];
	long left = 0;
	ssize_t got;
	int fd = name && strcmp(name, "-") ? open(name, O_RDONLY) : STDIN_FILENO;

	if (fd < 0) {
		fprintf(stderr, "iconv: cannot open input file `%s': %s\n", name, strerror(errno));
		return 1;
	}
	consumed = 0;
	while ((got = read(fd, buffer + left, sizeof buffer - (size_t)left)) > 0)
		if ((left = convert(buffer, (size_t)(left + got), 0)) < 0)
			break;
	if (got < 0)
		fprintf(stderr, "iconv: %s: %s\n", name ? name : "(stdin)", strerror(errno));
	if (left > 0)
		left = convert(buffer, (size_t)left, 1);
	if (fd != STDIN_FILENO)
		close(fd);
	return got < 0 || left < 0;
}

/* Takes //TRANSLIT and //IGNORE off a name. */
static char *plain_name(char *name)
{
	char *suffix = strstr(name, "//");

	if (suffix) {
		if (strstr(suffix, "IGNORE"))
			unknown = IS_LEFT_OUT;
		else if (strstr(suffix, "TRANSLIT"))
			unknown = IS_REPLACED;
		*suffix = 0;
	}
	return *name ? name : nl_langinfo(CODESET);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"from-code", required_argument, 0, 'f'}, {"to-code", required_argument, 0, 't'},
		{"output", required_argument, 0, 'o'}, {"list", no_argument, 0, 'l'},
		{"silent", no_argument, 0, 's'}, {0, 0, 0, 0},
	};
	char here[] = "", *from = here, *to = here;
	const char *file = 0;
	int option, status = 0, leave_out = 0;

	setlocale(LC_ALL, "");
	answer_about(argc, argv, "iconv", usage_text);
	while ((option = getopt_long(argc, argv, "f:t:o:lcs", options, 0)) != -1) {
		switch (option) {
		case 'f': from = optarg; break;
		case 't': to = optarg; break;
		case 'o': file = optarg; break;
		case 'c': leave_out = 1; break;
		case 's': quiet = 1; break;
		case 'l': puts(encodings); return 0;
		default: fputs(usage_text, stderr); return 1;
		}
	}
	from = plain_name(from);
	unknown = FAILS; /* what follows the name of the source means nothing */
	to = plain_name(to);
	if (leave_out)
		unknown = IS_LEFT_OUT;
	decoder = iconv_open("UCS-4LE", from);
	converter = iconv_open(to, from);
	if (decoder == (iconv_t)-1 || converter == (iconv_t)-1) {
		fprintf(stderr, "iconv: conversion from `%s' to `%s' is not supported\n", from, to);
		return 1;
	}
	output = file ? fopen(file, "w") : stdout;
	if (!output) {
		fprintf(stderr, "iconv: unable to open output file `%s': %s\n", file, strerror(errno));
		return 1;
	}
	if (optind == argc)
		status = convert_file(0);
	for (; optind < argc && !status; optind++)
		status = convert_file(argv[optind]);
	if (fflush(output) || ferror(output)) {
		perror("iconv: write error");
		return 1;
	}
	return status;
}
