/* What the wasm32 files of this libc share: the host's imports, the calls that
 * are ours alone, and the parts of the kernel's work that are done in the guest. */
#ifndef WASM_GUEST_H
#define WASM_GUEST_H

#include <features.h>
#include <stddef.h>
#include <stdint.h>

__attribute__((__import_module__("linux"), __import_name__("syscall")))
int __host_syscall(int nr, int a, int b, int c, int d, int e, int f);

/* System calls of our own, beyond Linux's numbers. */
enum {
	HOST_STARTUP_SIZE = 1000,
	HOST_STARTUP_FILL = 1001,
	HOST_SIGNAL_TAKE = 1002,
	HOST_SIGNAL_RETURN = 1003,
	HOST_MEMORY_WANTED = 1005,
};

/* The host's answer when a call was interrupted and is to be issued again. */
enum { RESTART_CALL = 512 };

/* The thread id that the libc uses for the first thread. It never leaves the
 * guest: calls that carry it are given the process id instead. */
enum { MAIN_TID = 0x1fffffff };
extern hidden struct __pthread __wasm_main_thread;

/* Marks a variable of the libc of which each thread has its own. A new thread finds it 0. */
#define PER_THREAD __attribute__((__section__("libc_thread")))

/* Defined only in programs that can start threads: notes the values that thread-local
 * variables begin with. */
hidden void __thread_locals_remember(void);

/* What main is given. */
extern hidden int __wasm_argc;
extern hidden char **__wasm_argv;

/* Set by the host when a signal that has a handler can be delivered. */
extern volatile int __signal_flag;
/* Runs the handlers of all signals that can be delivered. */
hidden void __signal_handle_all(void);

/* The signal state that this program shares with the kernel (src/signal/wasm32/signal_words.c).
 * Exported: the kernel fills it in when a program starts. */
struct k_sigaction;
extern struct signal_words {
	volatile uint64_t mask;
	volatile uint32_t owner;
	volatile uint32_t pid;
	struct signal_action {
		volatile uint64_t handler_and_flags;
		volatile uint64_t mask;
	} actions[64];
} __signal_words;
hidden int __signal_words_answer(long set_bytes);
hidden long __signal_words_mask(int how, const void *new, void *old);
hidden long __signal_words_action(unsigned signo, const struct k_sigaction *new,
                                  struct k_sigaction *old);
hidden long __signal_words_pid(void);

/* Defined only in programs that use longjmp (src/setjmp/wasm32/host_boundary.c):
 * runs handlers above the host's frames, which no jump can cross; says where a jump
 * goes instead; and does the one that was stopped. */
struct __jmp_buf_tag;
hidden void __signal_handle_above_host(void);
hidden struct __jmp_buf_tag *__jump_as_far_as_possible(struct __jmp_buf_tag *env, int value);
hidden void __deferred_jump(void);

/* Throws the exception that the frame of env catches. The compiler's own name for
 * it, __wasm_longjmp, must not be written where longjmp is. */
hidden _Noreturn void __throw_longjmp(struct __jmp_buf_tag *env, int value);

/* vfork: asks for the embryo child, and returns to its maker when it is over. */
hidden long __embryo_begin(struct __jmp_buf_tag *);
hidden void __embryo_end(long pid);
extern hidden int __embryo_pid;

/* Memory as mmap sees it; results are addresses or minus errno. */
hidden long __memory_map(size_t size, int prot, int flags, int fd, unsigned page_offset,
                         size_t address);
hidden long __memory_unmap(size_t address, size_t size);
hidden long __memory_remap(size_t address, size_t old_size, size_t new_size, int flags);
hidden long __memory_advise(size_t address, size_t size, int advice);

/* Writable shared mappings of files (src/mman/wasm32/shared_files.c), by exchange with
 * the file. Where there is one, __shared_publish comes before a call to the host; if it
 * says that the call takes a lock, __shared_refresh comes after. */
struct shared_file;
extern hidden struct shared_file *__shared_files;
hidden int __shared_publish(long n, long operation, long argument);
hidden void __shared_refresh(void);
hidden long __shared_exchange(size_t start, size_t size);
hidden long __shared_remember(size_t start, size_t size, int fd, uint64_t offset);
hidden long __shared_forget(size_t start, size_t size);
hidden int __shared_touches(size_t start, size_t size);

#endif
