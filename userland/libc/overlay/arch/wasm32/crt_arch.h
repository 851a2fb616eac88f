/* Unused: crt/wasm32/crt1.c is the whole entry code. */
