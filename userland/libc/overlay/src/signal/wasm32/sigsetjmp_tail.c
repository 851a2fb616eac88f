/* Nothing: the mask is restored by the jump (src/setjmp/wasm32/setjmp.c). */
typedef int empty_translation_unit;
