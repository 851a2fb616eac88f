#define LDSO_ARCH "wasm32"
#define TPOFF_K 0
#define CRTJMP(pc, sp) __builtin_trap()
