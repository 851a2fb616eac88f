/* One thread of a process runs at a time, and another can take over only at a system call,
 * at the entry of a function or at the head of a loop: a compare and a store have none of
 * these between them. */
#define a_cas a_cas
static inline int a_cas(volatile int *p, int expected, int value)
{
	int old = *p;
	if (old == expected) *p = value;
	return old;
}

#define a_barrier a_barrier
static inline void a_barrier(void)
{
	__asm__ __volatile__ ("" : : : "memory");
}

#define a_ctz_32 a_ctz_32
static inline int a_ctz_32(unsigned x)
{
	return __builtin_ctz(x);
}

#define a_ctz_64 a_ctz_64
static inline int a_ctz_64(unsigned long long x)
{
	return __builtin_ctzll(x);
}

#define a_clz_64 a_clz_64
static inline int a_clz_64(unsigned long long x)
{
	return __builtin_clzll(x);
}

#define a_crash a_crash
static inline void a_crash(void)
{
	__builtin_trap();
}
