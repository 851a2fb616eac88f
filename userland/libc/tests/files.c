/* Files and directories through stdio and the system calls beneath it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

static char directory[] = "/tmp/files.XXXXXX";

static void streams(void)
{
	FILE *f = fopen("stream", "w+");
	CHECK(f);
	for (int i = 0; i < 10000; i++) fprintf(f, "line %d\n", i);
	CHECK(!fseek(f, 0, SEEK_SET));
	char line[32], expected[32];
	for (int i = 0; i < 10000; i++) {
		sprintf(expected, "line %d\n", i);
		CHECK(fgets(line, sizeof line, f) && !strcmp(line, expected));
	}
	CHECK(!fgets(line, sizeof line, f) && feof(f) && !fclose(f));
}

static void attributes(void)
{
	struct stat st;
	CHECK(!stat("stream", &st) && S_ISREG(st.st_mode) && st.st_size == 98890);
	CHECK(!chmod("stream", 0640) && !stat("stream", &st) && (st.st_mode & 07777) == 0640);
	struct timespec times[2] = { { .tv_sec = 5000000000 }, { .tv_sec = 1, .tv_nsec = 2 } };
	CHECK(!utimensat(AT_FDCWD, "stream", times, 0) && !stat("stream", &st));
	CHECK(st.st_atim.tv_sec == 5000000000 && st.st_mtim.tv_sec == 1 && st.st_mtim.tv_nsec == 2);
	CHECK(!symlink("stream", "link") && !lstat("link", &st) && S_ISLNK(st.st_mode));
	char target[16];
	CHECK(readlink("link", target, 16) == 6 && !memcmp(target, "stream", 6));
	CHECK(stat("absent", &st) == -1 && errno == ENOENT);
	CHECK(!access("stream", R_OK) && !rename("stream", "renamed") && access("stream", F_OK) == -1);
	CHECK(renameat2(AT_FDCWD, "link", AT_FDCWD, "renamed", RENAME_NOREPLACE) == -1);
	CHECK(errno == EEXIST);
}

static void offsets(void)
{
	int fd = open("sparse", O_RDWR|O_CREAT|O_EXCL, 0600);
	off_t far = (off_t)5 << 30;
	CHECK(fd >= 0 && lseek(fd, far, SEEK_SET) == far && write(fd, "end", 3) == 3);
	struct stat st;
	char buffer[4] = "";
	CHECK(!fstat(fd, &st) && st.st_size == far + 3);
	CHECK(pread(fd, buffer, 3, far) == 3 && !strcmp(buffer, "end"));
	CHECK(pwrite(fd, "A", 1, far + 1) == 1 && !ftruncate(fd, far + 2));
	CHECK(lseek(fd, 0, SEEK_END) == far + 2 && lseek(fd, -1, SEEK_SET) == -1 && errno == EINVAL);
	CHECK(!close(fd) && close(fd) == -1 && errno == EBADF);
	CHECK(open("sparse", O_WRONLY|O_CREAT|O_EXCL, 0600) == -1 && errno == EEXIST);
}

static void listing(void)
{
	CHECK(!mkdir("many", 0700) && !chdir("many"));
	char name[32];
	for (int i = 0; i < 2000; i++) {
		sprintf(name, "entry-%d", i);
		CHECK(!close(open(name, O_WRONLY|O_CREAT, 0600)));
	}
	DIR *d = opendir(".");
	int seen = 0;
	for (struct dirent *e; (e = readdir(d));) seen += !strncmp(e->d_name, "entry-", 6) && e->d_ino;
	CHECK(seen == 2000 && !closedir(d));
	for (int i = 0; i < 2000; i++) {
		sprintf(name, "entry-%d", i);
		CHECK(!unlink(name));
	}
	CHECK(!chdir("..") && !rmdir("many"));
}

int main(void)
{
	char cwd[64];
	CHECK(mkdtemp(directory) && !chdir(directory) && getcwd(cwd, sizeof cwd));
	CHECK(!strcmp(cwd, directory));
	streams();
	attributes();
	offsets();
	listing();
	CHECK(!unlink("renamed") && !unlink("link") && !unlink("sparse"));
	CHECK(!chdir("/") && !rmdir(directory));
	return 0;
}
