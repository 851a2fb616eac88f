/* Filled by src/setjmp/wasm32/setjmp.c: label, frame identity, thrown value. */
typedef unsigned long long __jmp_buf[4];
