/* Included at the end of <setjmp.h>. The compiler gives meaning to the name
 * setjmp alone, and only in the frame that jumps return to; so the other forms
 * are macros over it. */
#ifdef __cplusplus
extern "C" {
#endif
struct __jmp_buf_tag *__sigsetjmp_prepare(struct __jmp_buf_tag *, int);
#ifdef __cplusplus
}
#endif

#define _setjmp(env) setjmp(env)
#define sigsetjmp(env, savemask) setjmp(__sigsetjmp_prepare(env, savemask))
