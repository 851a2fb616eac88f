// functions: proc_exit
// Ends with the number that its first argument says, through frames that never return.
#include "expect.h"

__attribute__((noinline)) static void leave(int depth, uint32_t code) {
    if (depth == 0) __wasi_proc_exit(code);
    leave(depth - 1, code);
    say("came back");
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    uint32_t code = 0;
    for (const char *digit = arguments[1]; *digit; digit++) code = code * 10 + (uint32_t)(*digit - '0');
    leave(20, code);
}
