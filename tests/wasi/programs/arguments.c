// functions: args_get args_sizes_get environ_get environ_sizes_get
// A program gets its arguments and its environment as the shell gave them.
#include "expect.h"

int main(void) {
    __wasi_size_t count, size;
    static uint8_t *pointers[64];
    static uint8_t text[65536];

    OK(__wasi_args_sizes_get(&count, &size));
    CHECK(count <= 64 && size <= sizeof text);
    OK(__wasi_args_get(pointers, text));
    CHECK(pointers[0] == text);
    for (__wasi_size_t i = 0; i < count; i++) {
        say((const char *)pointers[i]);
        say("\n");
    }
    CHECK(pointers[count - 1] + strlen((const char *)pointers[count - 1]) + 1 == text + size);

    OK(__wasi_environ_sizes_get(&count, &size));
    CHECK(count <= 64 && size <= sizeof text);
    OK(__wasi_environ_get(pointers, text));
    for (__wasi_size_t i = 0; i < count; i++) {
        say((const char *)pointers[i]);
        say("\n");
    }
    return 0;
}
