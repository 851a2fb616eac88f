/* Included by <unistd.h> inside its extern "C". vfork returns twice into its
 * caller's frame, hence a setjmp there; see src/process/wasm32/vfork.c. */
struct __jmp_buf_tag;
int __vfork_setjmp(struct __jmp_buf_tag *) __asm__("setjmp") __attribute__((__returns_twice__));
struct __jmp_buf_tag *__vfork_frame(void);
int __vfork_result(int);

#define vfork() __vfork_result(__vfork_setjmp(__vfork_frame()))
