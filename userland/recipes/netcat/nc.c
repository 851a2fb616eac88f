/*
 * The start of nc: OpenBSD's netcat, with the habits of Debian's and of others.
 *
 * `-l -p PORT` means `-l PORT`, `-l -s ADDRESS PORT` means `-l ADDRESS PORT`, and `-q SECONDS`
 * means `-N`: shut the connection down at the end of the input. `-e PROGRAM` is left to BusyBox's
 * nc. Options for TLS are refused, because libtls is not here. Below: functions of OpenBSD's C
 * library.
 */
#include "openbsd.h"
#undef main

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <termios.h>
#include <unistd.h>

#include "readpassphrase.h"

static const char with_value[] = "CeHIiKMmOoPpqRsTVWwXxZ";
static const char for_tls[] = "CcHKoRZ";
static const char other[] = "/usr/libexec/busybox/nc";

int netcat_main(int argc, char *argv[]);

int main(int argc, char *argv[])
{
	char **words = calloc(argc + 5, sizeof *words);
	char *port = NULL, *source = NULL;
	int count = 0, listens = 0, index;

	if (!words)
		return 1;
	words[count++] = argv[0];
	for (index = 1; index < argc; index++) {
		char *word = argv[index], *kept, *letter;

		if (word[0] != '-' || !word[1] || !strcmp(word, "--"))
			break;
		if (!strcmp(word, "--help")) {
			words[count++] = "-h";
			continue;
		}
		kept = words[count++] = calloc(strlen(word) + 2, 1);
		if (!kept)
			return 1;
		*kept++ = '-';
		for (letter = word + 1; *letter; letter++) {
			char *value = NULL;

			if (strchr(for_tls, *letter)) {
				fprintf(stderr,
				    "nc: -%c is not supported; for TLS use: openssl s_client -connect HOST:PORT\n",
				    *letter);
				return 1;
			}
			if (*letter == 'e') {
				execv(other, argv);
				perror(other);
				return 1;
			}
			listens |= *letter == 'l';
			if (!strchr(with_value, *letter)) {
				*kept++ = *letter;
				continue;
			}
			if (letter[1])
				value = letter + 1;
			else if (index + 1 < argc)
				value = argv[++index];
			if (*letter == 'q') {
				*kept++ = 'N';
			} else if (*letter == 'p' && value) {
				port = value;
			} else if (*letter == 's' && value) {
				source = value;
			} else {
				*kept++ = *letter;
				if (value)
					words[count++] = value;
			}
			break;
		}
		if (!strcmp(words[count - 1], "-"))
			count--;
	}
	if (port && !listens) {
		words[count++] = "-p";
		words[count++] = port;
	}
	if (source && !listens) {
		words[count++] = "-s";
		words[count++] = source;
	}
	if (source && listens)
		words[count++] = source;
	for (; index < argc; index++)
		words[count++] = argv[index];
	if (port && listens)
		words[count++] = port;
	words[count] = NULL;
	return netcat_main(count, words);
}

uint32_t arc4random_uniform(uint32_t bound)
{
	uint32_t number, least;

	if (bound < 2)
		return 0;
	least = -bound % bound;
	do {
		if (getrandom(&number, sizeof number, 0) != sizeof number)
			abort();
	} while (number < least);
	return number % bound;
}

int b64_ntop(const unsigned char *data, size_t size, char *text, size_t room)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t position, length = 0;

	if (room <= (size + 2) / 3 * 4)
		return -1;
	for (position = 0; position < size; position += 3) {
		size_t left = size - position;
		uint32_t bits = (uint32_t)data[position] << 16;

		if (left > 1)
			bits |= (uint32_t)data[position + 1] << 8;
		if (left > 2)
			bits |= data[position + 2];
		text[length++] = letters[bits >> 18];
		text[length++] = letters[bits >> 12 & 63];
		text[length++] = left > 1 ? letters[bits >> 6 & 63] : '=';
		text[length++] = left > 2 ? letters[bits & 63] : '=';
	}
	text[length] = '\0';
	return (int)length;
}

long long strtonum(const char *text, long long least, long long most, const char **problem)
{
	char *end;
	long long number;
	int before = errno;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (end == text || *end)
		*problem = "invalid";
	else if (number < least || (errno == ERANGE && number == LLONG_MIN))
		*problem = "too small";
	else if (number > most || errno == ERANGE)
		*problem = "too large";
	else
		*problem = NULL;
	errno = *problem ? EINVAL : before;
	return *problem ? 0 : number;
}

char *readpassphrase(const char *prompt, char *buffer, size_t size, int flags)
{
	struct termios usual, silent;
	size_t length = 0;
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);

	(void)flags;
	if (terminal < 0 || !size || tcgetattr(terminal, &usual)) {
		if (terminal >= 0)
			close(terminal);
		return NULL;
	}
	silent = usual;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	tcsetattr(terminal, TCSAFLUSH, &silent);
	dprintf(terminal, "%s", prompt);
	while (length + 1 < size && read(terminal, buffer + length, 1) == 1 && buffer[length] != '\n')
		length++;
	buffer[length] = '\0';
	dprintf(terminal, "\n");
	tcsetattr(terminal, TCSAFLUSH, &usual);
	close(terminal);
	return buffer;
}
