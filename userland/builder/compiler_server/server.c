/* A tool that is loaded once: preloaded into clang, wasm-ld or llvm-ar, this turns it into a server.
 *
 * Most compilations are short, and loading clang and LLVM takes a third of their time. The server
 * loads them once. For each request it forks, and the child is an ordinary clang from its `main`
 * on, with the arguments, environment, directory and standard files of the client (client.c).
 *
 * compiler_server.py starts it, and passes the listening socket as the descriptor COMPILER_SOCKET.
 * The server ends with its parent.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "request.h"

#define MOST_CLIENTS 256

typedef int Main(int, char **, char **);
typedef void Hook(void);
typedef int Spawn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                  char *const *, char *const *);
typedef int Start(Main *, int, char **, Hook *, Hook *, Hook *, void *);

static Main *compiler;
static int listening;
static struct stat program;
static struct {
	pid_t pid;
	int connection;
} clients[MOST_CLIENTS];

/* In the child: take over what the client has, and be the compiler. */
static void compile(int connection) {
	struct request head;
	int files[PASSED_FILES];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof files)];
	} control;
	struct iovec place = {&head, sizeof head};
	struct msghdr message = {
	    .msg_iov = &place, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	if (recvmsg(connection, &message, MSG_WAITALL) != sizeof head || message.msg_controllen < sizeof control)
		_exit(REFUSED);
	memcpy(files, CMSG_DATA(&control.header), sizeof files);
	char *text = malloc(head.length);
	char **words = calloc(head.arguments + head.variables + 2, sizeof *words);
	for (size_t got = 0; got < head.length;) {
		ssize_t more = read(connection, text + got, head.length - got);
		if (more <= 0) _exit(REFUSED);
		got += more;
	}
	/* The server keeps a descriptor of the connection, and answers. */
	close(connection);
	char **variables = words + head.arguments + 1;
	for (unsigned i = 0; i < head.arguments; i++, text += strlen(text) + 1) words[i] = text;
	for (unsigned i = 0; i < head.variables; i++, text += strlen(text) + 1) variables[i] = text;
	if (fchdir(files[DIRECTORY]) != 0) _exit(REFUSED);
	for (int i = 0; i < DIRECTORY; i++) dup2(files[i], i);
	for (int i = 0; i < PASSED_FILES; i++) close(files[i]);
	environ = variables;
	exit(compiler(head.arguments, words, variables));
}

static void answer_ended(void) {
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		for (int i = 0; i < MOST_CLIENTS; i++)
			if (clients[i].pid == pid) {
				clients[i].pid = 0;
				/* A client that has gone needs no answer. */
				(void)!write(clients[i].connection, &status, sizeof status);
				close(clients[i].connection);
			}
}

static void begin(int signals, sigset_t *before) {
	int slot = 0;
	while (slot < MOST_CLIENTS && clients[slot].pid != 0) slot++;
	int connection = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (connection < 0) return;
	pid_t pid = slot < MOST_CLIENTS ? fork() : -1;
	if (pid == 0) {
		close(listening);
		close(signals);
		for (int i = 0; i < MOST_CLIENTS; i++)
			if (clients[i].pid != 0) close(clients[i].connection);
		sigprocmask(SIG_SETMASK, before, NULL);
		compile(connection);
	} else if (pid < 0) {
		/* The client then runs a compiler of its own. */
		close(connection);
	} else {
		clients[slot].pid = pid;
		clients[slot].connection = connection;
	}
}

/* To compile and link, clang runs itself once more. A fork of what is loaded does the same: like
 * this, clang's `main` is also called for a compilation in the same process. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
	struct stat wanted;
	int itself = compiler != NULL && actions == NULL && stat(path, &wanted) == 0 &&
	             wanted.st_ino == program.st_ino && wanted.st_dev == program.st_dev;
	if (!itself) {
		Spawn *spawn = (Spawn *)dlsym(RTLD_NEXT, "posix_spawn");
		return spawn(pid, path, actions, attributes, arguments, variables);
	}
	int count = 0;
	while (arguments[count] != NULL) count++;
	*pid = fork();
	if (*pid == 0) exit(compiler(count, (char **)arguments, (char **)variables));
	return *pid < 0 ? errno : 0;
}

static int serve(int count, char **arguments, char **variables) {
	(void)count, (void)arguments, (void)variables;
	const char *socket = getenv("COMPILER_SOCKET");
	if (socket == NULL) return 1;
	if (stat("/proc/self/exe", &program) != 0) return 1;
	listening = atoi(socket);
	sigset_t child, before;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	struct pollfd watched[] = {{listening, POLLIN, 0}, {signals, POLLIN, 0}};
	for (;;) {
		if (poll(watched, 2, -1) < 0) continue;
		struct signalfd_siginfo told;
		while (read(signals, &told, sizeof told) > 0) {}
		answer_ended();
		if (watched[0].revents & POLLIN) begin(signals, &before);
	}
}

/* The C library calls `main` by this function. */
int __libc_start_main(Main *main, int count, char **arguments, Hook *init, Hook *fini, Hook *unload, void *stack) {
	Start *start = (Start *)dlsym(RTLD_NEXT, "__libc_start_main");
	compiler = main;
	return start(serve, count, arguments, init, fini, unload, stack);
}
