/* Every longjmp restores the mask if sigsetjmp saved one. */
#include <setjmp.h>
#include "wasm_guest.h"

_Noreturn void siglongjmp(sigjmp_buf env, int value)
{
	__throw_longjmp(env, value);
}
