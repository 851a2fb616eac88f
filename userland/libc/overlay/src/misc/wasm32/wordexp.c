/* wordexp's child only sets up its output and executes the shell. */
#define _GNU_SOURCE
#include <unistd.h>
#define fork vfork
#include "../wordexp.c"
