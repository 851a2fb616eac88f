/* Sessions: the host sends scripts, and bash runs each of them as `source` would.
 *
 * Included by eval.c. `bash --session REQUESTS,REPORTS -i` reads requests from one descriptor and
 * reports the end of each on another, so standard input, output and error belong to the scripts.
 * A request is a header of 32 bytes, a path, and a script:
 *
 *	token: 16 characters, space, bytes of the script: 8 hexadecimal digits, space,
 *	bytes of the path: 5 hexadecimal digits, newline
 *
 * The path is the file that the script gets as standard input; if it is empty, the script gets
 * /dev/null. A report is a newline, because programs may have written half a line to the
 * descriptor, the token, a space, the exit status, and a newline.
 *
 * Rules: a request costs two system calls. Everything that leaves a script early jumps to the
 * reader loop, which calls session_step again: that is where the report is written. Standard files
 * that a script has redirected with `exec` are restored after it. */
#include <errno.h>
#include <fcntl.h>

int session_redirected; /* `exec` has changed descriptors; set in execute_cmd.c */
/* Then sig.c prints no newline after an interrupt. Cleared in execute_cmd.c: a script without an
 * interpreter line is run by a copy of this shell, which serves nobody. */
int session_is_open;
char *session_option; /* set in shell.c */
char *session_text; /* the script that evalfile_internal runs instead of a file */
extern int stdin_redir;
extern PROCESS *the_pipeline; /* of jobs.c */

enum { HEADER = 32, TOKEN = 16, FIRST_ROOM = 8192, DESCRIPTORS = 110 };

static struct {
	int requests, reports; /* descriptors */
	int standard[3]; /* copies of the standard files */
	int is_running;
	char token[TOKEN + 1];
	char *received; /* bytes that are not used yet */
	size_t length, room;
} session = { -1, -1, { -1, -1, -1 } };

static void session_open(void)
{
	char *end;
	session.requests = strtol(session_option, &end, 10);
	session.reports = *end ? strtol(end + 1, 0, 10) : -1;
	session_option = 0;
	session_is_open = 1;
	fcntl(session.requests, F_SETFD, FD_CLOEXEC);
	fcntl(session.reports, F_SETFD, FD_CLOEXEC);
	int null = open("/dev/null", O_RDONLY);
	if (null > 0) {
		dup2(null, 0);
		close(null);
	}
	for (int fd = 0; fd < 3; fd++)
		session.standard[fd] = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTORS);
}

static int session_serves(void)
{
	if (session_option) session_open();
	return session_is_open;
}

static void session_restore_files(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (session.standard[fd] >= 0) dup2(session.standard[fd], fd);
	session_redirected = 0;
}

/* A script was left. If that happened after a child was made and before bash waited for it, the
 * child may have missed the signal that interrupted the script, and bash would wait for it after
 * the next command. */
static void session_end_children(void)
{
	PROCESS *child = the_pipeline;
	if (!already_making_children) return;
	if (child)
		do {
			kill(child->pid, SIGKILL);
			child = child->next;
		} while (child != the_pipeline);
	stop_making_children();
}

/* The end of a script, if one has run. */
static void session_report(int jumped)
{
	char line[TOKEN + 16];
	int length, done = 0;
	if (!session.is_running) return;
	session.is_running = 0;
	if (jumped) session_end_children();
	if (jumped || session_redirected) session_restore_files();
	length = snprintf(line, sizeof line, "\n%s %d\n", session.token, last_command_exit_value & 255);
	while (done < length) {
		int written = write(session.reports, line + done, length - done);
		if (written > 0) done += written;
		else if (errno != EINTR) exit_shell(EXECUTION_FAILURE); /* nobody would hear of it */
	}
}

/* Wait until so many bytes are received. 0 at the end. */
static int session_receive(size_t size)
{
	while (session.length < size) {
		if (session.room < size) {
			session.room = size < FIRST_ROOM ? FIRST_ROOM : size;
			session.received = xrealloc(session.received, session.room);
		}
		ssize_t count = read(session.requests, session.received + session.length,
			session.room - session.length);
		if (count > 0) session.length += count;
		else if (count == 0 || errno != EINTR) return 0;
		QUIT;
	}
	return 1;
}

static size_t session_number(const char *digits)
{
	return strtoul(digits, 0, 16);
}

static void session_open_input(const char *path)
{
	int file = open(path, O_RDONLY);
	if (file < 0) return;
	session_redirected = 1;
	dup2(file, 0);
	if (file) close(file);
}

/* Report the end of the last script, and run the next. 0 if there will be no more. */
static int session_step(int jumped)
{
	session_report(jumped);
	reap_dead_jobs();
	if (!session_receive(HEADER)) return 0;
	size_t script = session_number(session.received + TOKEN + 1);
	size_t path = session_number(session.received + TOKEN + 10);
	size_t size = HEADER + path + script;
	if (!session_receive(size)) return 0;

	memcpy(session.token, session.received, TOKEN);
	if (path) {
		char *name = substring(session.received, HEADER, HEADER + path);
		session_open_input(name);
		free(name);
	}
	session_text = substring(session.received, HEADER + path, size);
	session.length -= size;
	memmove(session.received, session.received + size, session.length);
	if (session.room > 16 * FIRST_ROOM && !session.length) {
		free(session.received);
		session.received = 0;
		session.room = 0;
	}

	session.is_running = 1;
	executing = 1;
	stdin_redir = 0;
	current_command_number++;
	last_command_exit_value = source_file("command", 0);
	return 1;
}
