/* WebAssembly rounds to nearest and has no status flags; the flags are a
 * variable that feraiseexcept sets (src/fenv/wasm32/fenv.c). */
#define FE_INVALID    1
#define FE_DIVBYZERO  2
#define FE_OVERFLOW   4
#define FE_UNDERFLOW  8
#define FE_INEXACT    16
#define FE_ALL_EXCEPT 31

#define FE_TONEAREST  0

typedef unsigned int fexcept_t;
typedef unsigned int fenv_t;

#define FE_DFL_ENV ((const fenv_t *) -1)
