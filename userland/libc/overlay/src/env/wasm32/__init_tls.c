/* The thread structure of the first thread, complete at compile time, and room for that of
 * another one. Variables that are declared thread-local lie together in one section
 * (wasm-cc sees to it), the libc's own in another, and the host exchanges both when another
 * thread takes over (src/thread/wasm32/clone.c). */
#include "pthread_impl.h"
#include "libc.h"
#include "wasm_guest.h"

enum { ALIGNMENT = 16 };

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

struct __pthread *__wasm_thread PER_THREAD = &__wasm_main_thread;

void __init_tls(size_t *auxv)
{
	libc.can_do_threads = 1;
	libc.tls_align = ALIGNMENT;
	libc.tls_size = (sizeof(struct __pthread) + 2*ALIGNMENT - 1) & -ALIGNMENT;
}

void *__copy_tls(unsigned char *room)
{
	return (void *)(((uintptr_t)room + ALIGNMENT - 1) & -ALIGNMENT);
}
