/* readdir, rewinddir, telldir and seekdir, in directories of many sizes. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

static int count(DIR *directory)
{
	int found = 0;
	errno = 0;
	while (readdir(directory)) found++;
	CHECK(errno == 0);
	/* The end stays the end. */
	CHECK(!readdir(directory) && errno == 0);
	return found;
}

static void make_file(int number)
{
	char name[32];
	sprintf(name, "d/a-file-with-a-name-%d", number);
	int fd = open(name, O_CREAT|O_WRONLY|O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !close(fd));
}

static void go_back(DIR *directory, int files)
{
	rewinddir(directory);
	for (int i = 0; i < files / 2; i++) CHECK(readdir(directory));
	long place = telldir(directory);
	struct dirent *entry = readdir(directory);
	CHECK(entry);
	ino_t next = entry->d_ino;
	int rest = count(directory);
	CHECK(files / 2 + 1 + rest == files);
	seekdir(directory, place);
	entry = readdir(directory);
	CHECK(entry && entry->d_ino == next && count(directory) == rest);
	seekdir(directory, telldir(directory));
	CHECK(!readdir(directory));
}

int main(void)
{
	CHECK(!mkdir("d", 0700));
	for (int files = 0, wanted = 0; wanted < 3000; wanted = wanted * 3 / 2 + 1) {
		while (files < wanted) make_file(files++);
		DIR *directory = opendir("d");
		CHECK(directory && count(directory) == files + 2);
		go_back(directory, files + 2);
		/* A file that is new since the first listing is seen after rewinddir. */
		make_file(files++);
		rewinddir(directory);
		CHECK(count(directory) == files + 2 && !closedir(directory));
	}
	return 0;
}
