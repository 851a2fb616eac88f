// A program that breaks a rule of WebAssembly, the one that its argument says.
#include "expect.h"

__attribute__((noinline)) static int recurse(int depth) {
    volatile char frame[256];
    frame[depth & 255] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[depth & 127];
}

int main(int count, char **arguments) {
    say("before\n");
    volatile int zero = count - 2;
    switch (arguments[1][0]) {
        case 'u': __builtin_trap();
        case 'm': return *(volatile int *)0xfffffff0;
        case 'd': return 1000 / zero;
        case 's': return recurse(0);
        case 'c': return ((int (*)(int, int))(uintptr_t)12345)(1, 2);
    }
    return 0;
}
