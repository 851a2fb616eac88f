/* Stands for clang and other tools of LLVM in the PATH of builds, and has the server (server.c) work.
 *
 * The socket of the server is beside this program: NAME.socket. If the server does not answer, the
 * real tool runs: the program of the same name in a later directory of PATH.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "request.h"

extern char **environ;
static char own_directory[PATH_MAX];

/* The real tool's path. */
static char *find(const char *name) {
	const char *path = getenv("PATH");
	char *place = malloc(PATH_MAX), *directories = strdup(path ? path : "/usr/bin:/bin");
	for (char *directory; (directory = strsep(&directories, ":")) != NULL;) {
		if (strcmp(directory, own_directory) == 0) continue;
		if (snprintf(place, PATH_MAX, "%s/%s", directory, name) < PATH_MAX && access(place, X_OK) == 0)
			return place;
	}
	return NULL;
}

static int server(const char *name) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int wanted = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s.socket", own_directory, name);
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (wanted >= (int)sizeof address.sun_path) return -1;
	return connect(connection, (struct sockaddr *)&address, sizeof address) == 0 ? connection : -1;
}

static int send_all(int connection, int count, char **arguments) {
	struct request head = {count, 0, 0};
	for (int i = 0; i < count; i++) head.length += strlen(arguments[i]) + 1;
	for (; environ[head.variables] != NULL; head.variables++)
		head.length += strlen(environ[head.variables]) + 1;
	char *text = malloc(head.length), *end = text;
	for (int i = 0; i < count; i++) end = stpcpy(end, arguments[i]) + 1;
	for (unsigned i = 0; i < head.variables; i++) end = stpcpy(end, environ[i]) + 1;
	int files[PASSED_FILES] = {0, 1, 2, open(".", O_PATH | O_CLOEXEC)};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof files)];
	} control = {.header = {CMSG_LEN(sizeof files), SOL_SOCKET, SCM_RIGHTS}};
	memcpy(CMSG_DATA(&control.header), files, sizeof files);
	struct iovec place = {&head, sizeof head};
	struct msghdr message = {
	    .msg_iov = &place, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	if (sendmsg(connection, &message, MSG_NOSIGNAL) != sizeof head) return 0;
	for (size_t sent = 0; sent < head.length;) {
		ssize_t more = send(connection, text + sent, head.length - sent, MSG_NOSIGNAL);
		if (more <= 0) return 0;
		sent += more;
	}
	return 1;
}

int main(int count, char **arguments) {
	ssize_t length = readlink("/proc/self/exe", own_directory, sizeof own_directory - 1);
	char *name = basename(arguments[0]);
	char *real = length > 0 && dirname(own_directory) ? find(name) : NULL;
	if (real == NULL) {
		fprintf(stderr, "%s: not found\n", arguments[0]);
		return 127;
	}
	arguments[0] = real;
	int connection = server(name), status;
	if (connection >= 0 && send_all(connection, count, arguments) &&
	    read(connection, &status, sizeof status) == sizeof status &&
	    !(WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)) {
		if (WIFSIGNALED(status)) raise(WTERMSIG(status));
		return WEXITSTATUS(status);
	}
	execv(real, arguments);
	return 127;
}
