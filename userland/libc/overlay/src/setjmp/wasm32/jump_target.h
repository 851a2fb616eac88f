/* What setjmp keeps in a jmp_buf. */
#include <stdint.h>

struct jump_target {
	uint32_t label;
	/* An address in the C stack frame of the function that called setjmp. */
	void *frame;
	struct {
		void *env;
		int value;
	} thrown;
};
