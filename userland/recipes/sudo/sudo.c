/* sudo and su: run a program as another user of the sandbox.
 *
 * Owns both programs; the name decides. The file is set-user-ID root, and the kernel of the sandbox
 * honours that. Rules: there are no passwords; `user` and root may become anybody, others nobody. A
 * program starts with a clean environment, as with the well-known sudo, and with what the sandbox
 * itself sets for TLS. Whatever cannot be done as asked is an error, never left out silently. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECURE_PATH "/usr/local/bin:/usr/bin:/bin"
#define HINTS "/usr/share/wasmsand/hints"
#define COMMAND_MAX 4096
#define MAIN_USER 1000

extern char **environ;
static const char *program = "sudo";

static const char *const kept[] = {
	"TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "LS_COLORS",
	"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT",
	"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", 0
};

static const char usage_text[] =
	"usage: sudo [-EHnS] [-u USER] [-g GROUP] [--preserve-env[=NAMES]] [NAME=VALUE ...] COMMAND [ARGUMENT ...]\n"
	"       sudo [-u USER] -i | -s [COMMAND [ARGUMENT ...]]\n"
	"       sudo -l | -v | -k | -V\n"
	"There are no passwords: the user of the sandbox may run every command as its root.\n";

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program, what, why);
	exit(1);
}

static void *checked(void *memory)
{
	if (!memory) fail("memory", strerror(ENOMEM));
	return memory;
}

/* The user whom the program becomes: a copy, since the library overwrites what it has returned. */
static struct passwd *user_named(const char *name)
{
	static struct passwd user;
	struct passwd *found;
	char *end;
	unsigned long uid;
	if (name[0] == '#') {
		errno = 0;
		uid = strtoul(name + 1, &end, 10);
		found = errno || *end || !name[1] ? 0 : getpwuid(uid);
	} else {
		found = getpwnam(name);
	}
	if (!found) {
		fprintf(stderr, "%s: unknown user %s\n", program, name);
		exit(1);
	}
	user = *found;
	user.pw_name = checked(strdup(found->pw_name));
	user.pw_dir = checked(strdup(found->pw_dir));
	user.pw_shell = checked(strdup(*found->pw_shell ? found->pw_shell : "/bin/sh"));
	return &user;
}

static gid_t group_named(const char *name)
{
	struct group *found = getgrnam(name);
	if (!found) {
		fprintf(stderr, "%s: unknown group %s\n", program, name);
		exit(1);
	}
	return found->gr_gid;
}

static void become(const struct passwd *user, gid_t group)
{
	if (initgroups(user->pw_name, group) || setgid(group) || setuid(user->pw_uid))
		fail(user->pw_name, strerror(errno));
}

/* Whether `entry` (NAME=VALUE) is one of the comma-separated `names`. */
static int is_named(const char *entry, const char *names)
{
	size_t length = strcspn(entry, "=");
	for (const char *at = names; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, entry, length)) return 1;
	return 0;
}

static int is_kept(const char *entry, const char *further)
{
	for (const char *const *name = kept; *name; name++) {
		size_t length = strlen(*name);
		if (!strncmp(entry, *name, length) && entry[length] == '=') return 1;
	}
	return !strncmp(entry, "LC_", 3) || is_named(entry, further);
}

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1)) fail(name, strerror(errno));
}

/* Drop every variable but those that are kept. */
static void clean_environment(const char *further)
{
	char **old = environ, **fresh;
	size_t count = 0;
	while (old[count]) count++;
	fresh = checked(calloc(count + 1, sizeof *fresh));
	for (char **to = fresh; *old; old++)
		if (is_kept(*old, further)) *to++ = *old;
	environ = fresh;
}

static void describe_user(const struct passwd *user)
{
	set("HOME", user->pw_dir);
	set("SHELL", user->pw_shell);
	set("USER", user->pw_name);
	set("LOGNAME", user->pw_name);
}

static void describe_caller(char **command)
{
	struct passwd *caller = getpwuid(getuid());
	char text[COMMAND_MAX], number[16];
	size_t length = 0;
	text[0] = 0;
	for (char **word = command; *word && length < sizeof text; word++)
		length += snprintf(text + length, sizeof text - length, length ? " %s" : "%s", *word);
	set("SUDO_COMMAND", text);
	set("SUDO_USER", caller ? caller->pw_name : "unknown");
	snprintf(number, sizeof number, "%u", (unsigned)getuid());
	set("SUDO_UID", number);
	snprintf(number, sizeof number, "%u", (unsigned)getgid());
	set("SUDO_GID", number);
}

/* What bash says after "command not found", for the same names. */
static void print_hint(const char *command)
{
	char line[1024], *hint, *name;
	FILE *hints = fopen(HINTS, "r");
	if (!hints) return;
	while (fgets(line, sizeof line, hints)) {
		if (!(hint = strchr(line, '\t'))) continue;
		*hint++ = 0;
		for (name = strtok(line, " "); name; name = strtok(0, " "))
			if (!strcmp(name, command)) fprintf(stderr, "hint: %s", hint);
	}
	fclose(hints);
}

static void execute(const char *file, char **argv)
{
	execvp(file, argv);
	if (errno == ENOENT) {
		fprintf(stderr, "%s: %s: command not found\n", program, file);
		print_hint(file);
	} else {
		fprintf(stderr, "%s: unable to execute %s: %s\n", program, file, strerror(errno));
	}
	exit(1);
}

/* The words as a script: the shell expands variables in them, and nothing else. */
static char *joined(char **words)
{
	size_t length = 1;
	char *text, *to;
	for (char **word = words; *word; word++) length += 2 * strlen(*word) + 1;
	to = text = checked(calloc(1, length));
	for (char **word = words; *word; word++) {
		if (word != words) *to++ = ' ';
		for (const char *from = *word; *from; from++) {
			if (!isalnum((unsigned char)*from) && !strchr("_-$", *from)) *to++ = '\\';
			*to++ = *from;
		}
	}
	return text;
}

/* Run the user's shell, or let it run a script. */
static void execute_shell(const char *shell, int is_login, const char *script, char **arguments)
{
	const char *slash = strrchr(shell, '/');
	const char *base = slash ? slash + 1 : shell;
	char *name = checked(malloc(strlen(base) + 2));
	size_t count = 0, used = 0;
	char **argv;
	sprintf(name, "%s%s", is_login ? "-" : "", base);
	while (arguments && arguments[count]) count++;
	argv = checked(calloc(count + 4, sizeof *argv));
	argv[used++] = name;
	if (script) {
		argv[used++] = "-c";
		argv[used++] = (char *)script;
	}
	for (size_t at = 0; at < count; at++) argv[used++] = arguments[at];
	execute(shell, argv);
}

static void require_permission(void)
{
	struct passwd *caller = getpwuid(getuid());
	if (getuid() == 0 || getuid() == MAIN_USER) return;
	fprintf(stderr, "%s is not in the sudoers file.\n", caller ? caller->pw_name : "this user");
	exit(1);
}

static int sudo(int argc, char **argv)
{
	static const struct option options[] = {
		{"user", required_argument, 0, 'u'}, {"group", required_argument, 0, 'g'},
		{"preserve-env", optional_argument, 0, 'E'}, {"login", no_argument, 0, 'i'},
		{"shell", no_argument, 0, 's'}, {"set-home", no_argument, 0, 'H'},
		{"non-interactive", no_argument, 0, 'n'}, {"stdin", no_argument, 0, 'S'},
		{"prompt", required_argument, 0, 'p'}, {"list", no_argument, 0, 'l'},
		{"validate", no_argument, 0, 'v'}, {"reset-timestamp", no_argument, 0, 'k'},
		{"remove-timestamp", no_argument, 0, 'K'}, {"version", no_argument, 0, 'V'},
		{"help", no_argument, 0, 'h'}, {0, 0, 0, 0}
	};
	const char *name = "root", *group = 0, *further = 0;
	int is_login = 0, is_shell = 0, keeps_all = 0, is_done = 0, option;
	while ((option = getopt_long(argc, argv, "+u:g:EisHnSp:lvkKVh", options, 0)) != -1) {
		switch (option) {
		case 'u': name = optarg; break;
		case 'g': group = optarg; break;
		case 'E': if (optarg) further = optarg; else keeps_all = 1; break;
		case 'i': is_login = 1; break;
		case 's': is_shell = 1; break;
		case 'H': case 'n': case 'S': case 'p': break;
		case 'v': case 'k': case 'K': is_done = 1; break;
		case 'l':
			require_permission();
			printf("The user of the sandbox may run every command as every user, without a password:\n"
				"    (ALL : ALL) NOPASSWD: ALL\n");
			return 0;
		case 'V': printf("sudo of wasmsand 1\n"); return 0;
		case 'h': fputs(usage_text, stdout); return 0;
		default: fputs(usage_text, stderr); return 1;
		}
	}
	argv += optind;
	if (!*argv && !is_login && !is_shell) {
		if (is_done) return 0;
		fputs(usage_text, stderr);
		return 1;
	}
	require_permission();
	struct passwd *user = user_named(name);
	gid_t gid = group ? group_named(group) : user->pw_gid;
	char *shell = getenv("SHELL");
	shell = checked(strdup(is_login || !shell ? user->pw_shell : shell));
	if (!keeps_all) clean_environment(further);
	set("PATH", SECURE_PATH);
	if (!(keeps_all && getenv("HOME"))) set("HOME", user->pw_dir);
	char *home = checked(strdup(getenv("HOME")));
	describe_user(user);
	set("HOME", home);
	describe_caller(*argv ? argv : (char *[]){shell, 0});
	while (*argv && **argv != '=' && strchr(*argv, '=') && !memchr(*argv, '/', strcspn(*argv, "=")))
		if (putenv(*argv++)) fail("environment", strerror(errno));
	become(user, gid);
	if (is_login && chdir(user->pw_dir))
		fprintf(stderr, "sudo: unable to change directory to %s: %s\n", user->pw_dir, strerror(errno));
	if (is_login || is_shell)
		execute_shell(shell, is_login, *argv ? joined(argv) : 0, 0);
	if (!*argv) {
		fputs(usage_text, stderr);
		return 1;
	}
	execute(*argv, argv);
	return 1;
}

static int su(int argc, char **argv)
{
	static const struct option options[] = {
		{"command", required_argument, 0, 'c'}, {"login", no_argument, 0, 'l'},
		{"shell", required_argument, 0, 's'}, {"preserve-environment", no_argument, 0, 'p'},
		{0, 0, 0, 0}
	};
	const char *script = 0, *shell = 0;
	int is_login = 0, keeps_all = 0, option;
	while ((option = getopt_long(argc, argv, "c:ls:mp", options, 0)) != -1) {
		switch (option) {
		case 'c': script = optarg; break;
		case 'l': is_login = 1; break;
		case 's': shell = optarg; break;
		case 'm': case 'p': keeps_all = 1; break;
		default:
			fputs("usage: su [-lmp] [-c COMMAND] [-s SHELL] [-] [USER [ARGUMENT ...]]\n", stderr);
			return 1;
		}
	}
	argv += optind;
	if (*argv && !strcmp(*argv, "-")) {
		is_login = 1;
		argv++;
	}
	struct passwd *user = user_named(*argv ? *argv++ : "root");
	if (getuid() != 0) {
		fputs("su: Authentication failure\n"
			"hint: there are no passwords: use `sudo COMMAND`, or `sudo su`\n", stderr);
		return 1;
	}
	if (!shell) shell = user->pw_shell;
	if (is_login && !keeps_all) {
		clean_environment(0);
		set("PATH", SECURE_PATH);
	}
	if (!keeps_all) describe_user(user);
	become(user, user->pw_gid);
	if (is_login && chdir(user->pw_dir))
		fprintf(stderr, "su: cannot change directory to %s: %s\n", user->pw_dir, strerror(errno));
	execute_shell(shell, is_login, script, argv);
	return 1;
}

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : 0;
	const char *name = slash ? slash + 1 : argc ? argv[0] : "sudo";
	if (!strcmp(name, "su")) {
		program = "su";
		return su(argc, argv);
	}
	return sudo(argc, argv);
}
