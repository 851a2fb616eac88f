/* Linked when the program's main takes the environment too: the compiler leaves
 * the name of such a main alone. */
#include <unistd.h>
#include "libc.h"

int main_with_environment(int, char **, char **) __asm__("main");

int __main_argc_argv(int argc, char **argv)
{
	return main_with_environment(argc, argv, __environ);
}
