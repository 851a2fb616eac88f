#define _GNU_SOURCE
#include <stdio.h>
#include "syscall.h"

int renameat2(int old_directory, const char *old, int new_directory, const char *new, unsigned flags)
{
	return syscall(SYS_renameat2, old_directory, old, new_directory, new, flags);
}
