/* getent: entries of the system's databases.
 *
 *	getent DATABASE [KEY ...]
 *
 * Exit status: 0, 1 for a wrong database, 2 if a key is not there, 3 if the database
 * cannot be listed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "about.h"

static const char usage_text[] = "Usage: getent DATABASE [KEY ...]\n";

enum { FOUND, WRONG_USE, NOT_FOUND, NO_LIST };

static int is_number(const char *text)
{
	if (!*text)
		return 0;
	for (; *text; text++)
		if (!isdigit((unsigned char)*text))
			return 0;
	return 1;
}

static int print_user(const struct passwd *user)
{
	if (!user)
		return NOT_FOUND;
	printf("%s:%s:%u:%u:%s:%s:%s\n", user->pw_name, user->pw_passwd, (unsigned)user->pw_uid,
	       (unsigned)user->pw_gid, user->pw_gecos, user->pw_dir, user->pw_shell);
	return FOUND;
}

static int users(const char *key)
{
	const struct passwd *user;

	if (key)
		return print_user(is_number(key) ? getpwuid((uid_t)strtoul(key, 0, 10)) : getpwnam(key));
	setpwent();
	while ((user = getpwent()))
		print_user(user);
	return FOUND;
}

static int print_group(const struct group *group)
{
	if (!group)
		return NOT_FOUND;
	printf("%s:%s:%u:", group->gr_name, group->gr_passwd, (unsigned)group->gr_gid);
	for (char **member = group->gr_mem; *member; member++)
		printf("%s%s", member == group->gr_mem ? "" : ",", *member);
	putchar('\n');
	return FOUND;
}

static int groups(const char *key)
{
	const struct group *group;

	if (key)
		return print_group(is_number(key) ? getgrgid((gid_t)strtoul(key, 0, 10)) : getgrnam(key));
	setgrent();
	while ((group = getgrent()))
		print_group(group);
	return FOUND;
}

/* Prints the words of each line, the first one in a column of `width`. */
static void print_words(char *line, int width)
{
	char *word = strtok(line, " \t");

	printf("%-*s", width, word);
	while ((word = strtok(0, " \t")))
		printf(" %s", word);
	putchar('\n');
}

static int has_word(const char *line, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = line; (at = strstr(at, key)); at++)
		if ((at == line || isspace((unsigned char)at[-1])) &&
		    (!at[length] || isspace((unsigned char)at[length])))
			return 1;
	return 0;
}

/* Prints the lines of a file in which a word is the key (all lines without one). */
static int lines(const char *path, const char *key, int width)
{
	char *line = 0;
	size_t room = 0;
	int found = key ? NOT_FOUND : FOUND;
	FILE *file = fopen(path, "r");

	if (!file)
		return NOT_FOUND;
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "#\n")] = 0;
		if (!line[strspn(line, " \t")] || (key && !has_word(line, key)))
			continue;
		print_words(line, width);
		found = FOUND;
	}
	free(line);
	fclose(file);
	return found;
}

static int hosts(const char *key)
{
	char text[INET6_ADDRSTRLEN];
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *list;
	int found = lines("/etc/hosts", key, 15);

	if (!key || found == FOUND)
		return found;
	if (getaddrinfo(key, 0, &hint, &list))
		return NOT_FOUND;
	for (struct addrinfo *one = list; one; one = one->ai_next) {
		const void *address = one->ai_family == AF_INET
			? (const void *)&((struct sockaddr_in *)one->ai_addr)->sin_addr
			: (const void *)&((struct sockaddr_in6 *)one->ai_addr)->sin6_addr;
		if (inet_ntop(one->ai_family, address, text, sizeof text))
			printf("%-15s %s\n", text, key);
	}
	freeaddrinfo(list);
	return FOUND;
}

static int services(const char *key) { return lines("/etc/services", key, 21); }
static int protocols(const char *key) { return lines("/etc/protocols", key, 21); }
static int networks(const char *key) { return lines("/etc/networks", key, 21); }
static int shells(const char *key) { return lines("/etc/shells", key, 0); }

static const struct {
	const char *name;
	int (*print)(const char *key);
} databases[] = {
	{"group", groups}, {"hosts", hosts}, {"networks", networks}, {"passwd", users},
	{"protocols", protocols}, {"services", services}, {"shells", shells},
};

int main(int argc, char **argv)
{
	answer_about(argc, argv, "getent", usage_text);
	if (argc < 2) {
		fputs(usage_text, stderr);
		return WRONG_USE;
	}
	for (size_t i = 0; i < sizeof databases / sizeof *databases; i++) {
		int status = FOUND;

		if (strcmp(databases[i].name, argv[1]) != 0)
			continue;
		if (argc == 2)
			return databases[i].print(0);
		for (int n = 2; n < argc; n++)
			if (databases[i].print(argv[n]) != FOUND)
				status = NOT_FOUND;
		return fflush(stdout) ? WRONG_USE : status;
	}
	fprintf(stderr, "Unknown database: %s\n", argv[1]);
	return WRONG_USE;
}
