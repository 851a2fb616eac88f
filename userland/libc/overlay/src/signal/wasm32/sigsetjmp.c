/* sigsetjmp is a macro (bits/setjmp_calls.h). The function exists for programs
 * that only ask whether it does; it cannot return twice into its caller. */
#include <setjmp.h>
#undef sigsetjmp

int sigsetjmp(sigjmp_buf env, int savemask)
{
	__builtin_trap();
}

__attribute__((__weak__, __alias__("sigsetjmp"))) int __sigsetjmp(sigjmp_buf, int);
