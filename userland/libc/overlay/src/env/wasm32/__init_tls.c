/* The thread structure of the only thread, complete at compile time. Variables
 * declared thread-local are ordinary ones on this target. */
#include "pthread_impl.h"
#include "libc.h"
#include "wasm_guest.h"

volatile int __thread_list_lock;

struct __pthread __wasm_main_thread = {
	.self = &__wasm_main_thread,
	.prev = &__wasm_main_thread,
	.next = &__wasm_main_thread,
	.tid = MAIN_TID,
	.detach_state = DT_JOINABLE,
	.robust_list.head = &__wasm_main_thread.robust_list.head,
	.locale = &libc.global_locale,
};

void __init_tls(size_t *auxv)
{
}
