/* A program with a checkpoint. At the start that is stored it fills a table; at every start it
 * tells what it sees. `stored fork` does so in a child too. The variable OBSTACLE makes it do
 * something before the checkpoint that cannot be stored; `plain store` asks to be stored. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "checkpoint.h"

enum { PAGES = 300 };

static int constructed;
static unsigned *table;
static unsigned char seed[4];

__attribute__((constructor)) static void construct(void)
{
	constructed++;
}

static void tell(const char *who, int argc, char **argv)
{
	unsigned sum = 0;
	for (int i = 0; i < PAGES; i++) sum += table ? table[i * 1024] : 0;
	const char *name = getenv("NAME");
	printf("%s: constructed %d, sum %u, argc %d, argv %s, NAME %s, called %s\n", who, constructed,
		sum, argc, argc > 1 ? argv[1] : "-", name ? name : "-", program_invocation_short_name);
}

static void hinder(const char *what)
{
	if (!strcmp(what, "open")) open("/etc/passwd", O_RDONLY);
	if (!strcmp(what, "close")) close(0);
	if (!strcmp(what, "chdir")) chdir("/tmp");
	if (!strcmp(what, "umask")) umask(077);
	if (!strcmp(what, "ignore")) signal(SIGPIPE, SIG_IGN);
	if (!strcmp(what, "block")) sighold(SIGINT);
	if (!strcmp(what, "alarm")) alarm(100);
	if (!strcmp(what, "write")) write(1, "hello", 5);
	if (!strcmp(what, "exit")) exit(9);
	if (!strcmp(what, "child") && !vfork()) _exit(0);
}

int main(int argc, char **argv)
{
	if (checkpoint_wanted()) {
		table = malloc(PAGES * 4096);
		for (int i = 0; i < PAGES; i++) table[i * 1024] = i;
		getrandom(seed, sizeof seed, 0);
		char deep[5000];
		memset(deep, 'x', sizeof deep);
		table[1] = deep[time(0) % 7];
		if (getenv("OBSTACLE")) hinder(getenv("OBSTACLE"));
		checkpoint();
	}
	tell("plain", argc, argv);
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "store")) checkpoint();
	return 3;
}

int resumed_main(int argc, char **argv, char **envp)
{
	(void)envp;
	tell("resumed", argc, argv);
	printf("seed %02x%02x%02x%02x\n", seed[0], seed[1], seed[2], seed[3]);
	if (argc > 1 && !strcmp(argv[1], "fork")) {
		fflush(stdout);
		table[0] = 1000;
		pid_t child = fork();
		if (!child) {
			table[0] += 1;
			tell("child", argc, argv);
			exit(5);
		}
		int status;
		if (waitpid(child, &status, 0) != child) return 1;
		printf("status %d\n", WEXITSTATUS(status));
		tell("parent", argc, argv);
	}
	return 4;
}
