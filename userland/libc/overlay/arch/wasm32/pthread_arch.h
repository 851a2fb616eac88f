/* The structure of the thread that runs; the host exchanges the variable when another
 * thread takes over (src/env/wasm32/__init_tls.c). */
extern hidden struct __pthread *__wasm_thread;

static inline uintptr_t __get_tp(void)
{
	return (uintptr_t)__wasm_thread;
}
