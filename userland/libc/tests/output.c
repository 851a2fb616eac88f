/* Standard output that is no terminal is written when its buffer is full, not before. */
#include <fcntl.h>
#include <unistd.h>
#include "check.h"

int main(void)
{
	int ends[2], terminal_or_file = dup(1);
	char text[64];
	CHECK(!pipe(ends) && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && dup2(ends[1], 1) == 1);
	CHECK(printf("first\n") == 6 && puts("second") >= 0);
	CHECK(read(ends[0], text, sizeof text) == -1 && errno == EAGAIN);
	CHECK(!fflush(stdout) && read(ends[0], text, sizeof text) == 13);
	return dup2(terminal_or_file, 1) != 1;
}
