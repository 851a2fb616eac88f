/* Named in rt_sigaction's structure and never called: a handler just returns. */
#include <features.h>

hidden void __restore(void) {}
hidden void __restore_rt(void) {}
