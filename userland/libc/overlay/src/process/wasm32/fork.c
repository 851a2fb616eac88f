/* No locks to hold over a fork and no signals to block: there is one thread, and
 * handlers run only after system calls or between loop turns. */
#include <unistd.h>
#include "libc.h"

static void no_handlers(int phase)
{
}
weak_alias(no_handlers, __fork_handler);

pid_t fork(void)
{
	__fork_handler(-1);
	pid_t pid = _Fork();
	__fork_handler(!pid);
	return pid;
}
