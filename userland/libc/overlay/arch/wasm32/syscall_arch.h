/* Every system call of the libc goes through one function, which answers the
 * calls that concern only this memory itself and passes the others to the host
 * (src/internal/wasm32/wasm_syscall.c). 64-bit arguments: low word, high word. */
#define __SYSCALL_LL_E(x) (long)(unsigned long long)(x), (long)((unsigned long long)(x) >> 32)
#define __SYSCALL_LL_O(x) __SYSCALL_LL_E(x)

hidden long __wasm_syscall(long, long, long, long, long, long, long);

static inline long __syscall0(long n)
{
	return __wasm_syscall(n, 0, 0, 0, 0, 0, 0);
}

static inline long __syscall1(long n, long a)
{
	return __wasm_syscall(n, a, 0, 0, 0, 0, 0);
}

static inline long __syscall2(long n, long a, long b)
{
	return __wasm_syscall(n, a, b, 0, 0, 0, 0);
}

static inline long __syscall3(long n, long a, long b, long c)
{
	return __wasm_syscall(n, a, b, c, 0, 0, 0);
}

static inline long __syscall4(long n, long a, long b, long c, long d)
{
	return __wasm_syscall(n, a, b, c, d, 0, 0);
}

static inline long __syscall5(long n, long a, long b, long c, long d, long e)
{
	return __wasm_syscall(n, a, b, c, d, e, 0);
}

static inline long __syscall6(long n, long a, long b, long c, long d, long e, long f)
{
	return __wasm_syscall(n, a, b, c, d, e, f);
}

#define IPC_64 0
