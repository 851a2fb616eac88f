/* The entry point. Asyncify enters it again to rewind a forked process. */
_Noreturn void __wasm_start(void);

void _start(void)
{
	__wasm_start();
}
