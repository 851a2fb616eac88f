/* Linked when the program's main takes arguments; __main_argc_argv is the
 * compiler's name for main(int, char **). */
#include "wasm_guest.h"

int __main_argc_argv(int, char **);

int __main_void(void)
{
	return __main_argc_argv(__wasm_argc, __wasm_argv);
}
