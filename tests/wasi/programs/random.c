// functions: random_get sched_yield
// Random bytes, all of them, also when there are many.
#include "expect.h"

int main(void) {
    static uint8_t bytes[3 << 20];
    OK(__wasi_random_get(bytes, 0));
    CHECK(bytes[0] == 0);
    OK(__wasi_random_get(bytes, sizeof bytes));
    int counts[256] = {0};
    for (size_t i = 0; i < sizeof bytes; i++) counts[bytes[i]]++;
    for (int i = 0; i < 256; i++) CHECK(counts[i] > 11000 && counts[i] < 13500);
    uint8_t again[16];
    OK(__wasi_random_get(again, sizeof again));
    CHECK(memcmp(again, bytes, sizeof again) != 0);
    OK(__wasi_sched_yield());
    return 0;
}
