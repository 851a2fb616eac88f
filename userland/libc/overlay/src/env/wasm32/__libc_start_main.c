/* From the host's call of _start to main: fetch arguments and environment, run
 * constructors, and exit with main's result. */
#include <elf.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "libc.h"
#include "wasm_guest.h"

/* The compiler's name for main(void), or the one in __main_void.c. */
int __main_void(void);
/* Made by the linker from all constructors. */
void __wasm_call_ctors(void);

int __wasm_argc;
char **__wasm_argv;
extern __attribute__((__weak__)) __typeof(__thread_locals_remember) __thread_locals_remember;
static size_t auxiliary[] = { AT_PAGESZ, PAGE_SIZE, AT_NULL, 0 };

struct startup {
	uint32_t argc, envc;
	char strings[];
};

static void *pages(size_t size)
{
	long r = __memory_map(size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0, 0);
	if (r < 0 && r > -4096) _Exit(127);
	return (void *)r;
}

/* One call if everything fits into a page, as it mostly does. */
static struct startup *fetch_startup(void)
{
	struct startup *page = pages(PAGE_SIZE);
	if (!__host_syscall(HOST_STARTUP_FILL, (int)page, PAGE_SIZE, 0, 0, 0, 0)) return page;
	__memory_unmap((size_t)page, PAGE_SIZE);
	int size = __host_syscall(HOST_STARTUP_SIZE, 0, 0, 0, 0, 0, 0);
	if (size < (int)sizeof(struct startup)) _Exit(127);
	struct startup *startup = pages(size);
	if (__host_syscall(HOST_STARTUP_FILL, (int)startup, size, 0, 0, 0, 0) < 0) _Exit(127);
	return startup;
}

static char *point_at(char **list, uint32_t count, char *string)
{
	for (; count; count--) {
		*list++ = string;
		string += strlen(string) + 1;
	}
	*list = 0;
	return string;
}

static void name_program(char *path)
{
	__progname_full = path;
	char *slash = strrchr(path, '/');
	__progname = slash ? slash + 1 : path;
}

hidden _Noreturn void __wasm_start(void)
{
	struct startup *startup = fetch_startup();
	char **argv = pages((startup->argc + startup->envc + 2) * sizeof *argv);
	char **envp = argv + startup->argc + 1;
	point_at(envp, startup->envc, point_at(argv, startup->argc, startup->strings));

	__wasm_argc = startup->argc;
	__wasm_argv = argv;
	__environ = envp;
	libc.auxv = auxiliary;
	libc.page_size = PAGE_SIZE;
	__init_tls(0);
	if (__thread_locals_remember) __thread_locals_remember();
	if (argv[0]) name_program(argv[0]);

	__wasm_call_ctors();
	exit(__main_void());
}
