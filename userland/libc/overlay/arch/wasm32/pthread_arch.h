/* The only thread's structure is a static variable (src/env/wasm32/__init_tls.c). */
extern hidden struct __pthread __wasm_main_thread;

static inline uintptr_t __get_tp(void)
{
	return (uintptr_t)&__wasm_main_thread;
}
