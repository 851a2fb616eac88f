/* The block function of SHA-256, with vectors of 128 bits.
 *
 * Owns what WebAssembly does instead of sha256_update of Hacl_Hash_SHA2.c. Vectors compute the message
 * schedule, four words at once; the rounds compute one word. A round is written so that few
 * operations depend on each other: a sum for Ch, and one `a ^ b` for two rounds of Maj. */

#include <wasm_simd128.h>

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))

/* `ab` is b ^ c before, and a ^ b, which is the next round's b ^ c, after. */
#define ROUND(a, b, c, d, e, f, g, h, word) \
    do { \
        uint32_t sum = h + (word) + ((e & f) + (~e & g)); \
        sum += ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25); \
        uint32_t next = a ^ b; \
        d += sum; \
        h = sum + ((ab & next) ^ b); \
        ab = next; \
        h += ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22); \
    } while (0)

#define ROUNDS_4(i, a, b, c, d, e, f, g, h) \
    do { \
        ROUND(a, b, c, d, e, f, g, h, words[i]); \
        ROUND(h, a, b, c, d, e, f, g, words[i + 1]); \
        ROUND(g, h, a, b, c, d, e, f, words[i + 2]); \
        ROUND(f, g, h, a, b, c, d, e, words[i + 3]); \
    } while (0)

#define ROUNDS_16(i) \
    do { \
        ROUNDS_4(i, a, b, c, d, e, f, g, h); \
        ROUNDS_4(i + 4, e, f, g, h, a, b, c, d); \
        ROUNDS_4(i + 8, a, b, c, d, e, f, g, h); \
        ROUNDS_4(i + 12, e, f, g, h, a, b, c, d); \
    } while (0)

/* Four words of the message, which is big-endian. */
static inline v128_t
sha256_load(const uint8_t *p)
{
    v128_t x = wasm_v128_load(p);
    return wasm_i8x16_shuffle(x, x, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

/* sigma1 of two words, each of which fills a lane of 64 bits twice: a shift is then a rotation. */
static inline v128_t
sha256_sigma1(v128_t twice)
{
    v128_t rotated = wasm_v128_xor(wasm_u64x2_shr(twice, 17), wasm_u64x2_shr(twice, 19));
    return wasm_v128_xor(rotated, wasm_u32x4_shr(twice, 10));
}

/* The four words that follow the sixteen in x0 to x3. */
static inline v128_t
sha256_schedule(v128_t x0, v128_t x1, v128_t x2, v128_t x3)
{
    v128_t zero = wasm_i32x4_const(0, 0, 0, 0);
    v128_t w1 = wasm_i32x4_shuffle(x0, x1, 1, 2, 3, 4), w9 = wasm_i32x4_shuffle(x2, x3, 1, 2, 3, 4);
    v128_t sigma0 = wasm_v128_xor(wasm_u32x4_shr(w1, 7), wasm_i32x4_shl(w1, 25));
    sigma0 = wasm_v128_xor(sigma0, wasm_v128_xor(wasm_u32x4_shr(w1, 18), wasm_i32x4_shl(w1, 14)));
    sigma0 = wasm_v128_xor(sigma0, wasm_u32x4_shr(w1, 3));
    v128_t sum = wasm_i32x4_add(wasm_i32x4_add(x0, w9), sigma0);
    // The last two words depend on the first two.
    v128_t sigma1 = sha256_sigma1(wasm_i32x4_shuffle(x3, x3, 2, 2, 3, 3));
    sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sigma1, zero, 0, 2, 4, 4));
    sigma1 = sha256_sigma1(wasm_i32x4_shuffle(sum, sum, 0, 0, 1, 1));
    return wasm_i32x4_add(sum, wasm_i32x4_shuffle(sigma1, zero, 4, 4, 0, 2));
}

/* Add `count` blocks of 64 bytes to the state. */
static __attribute__((noinline)) void
sha256_blocks(uint32_t *state, const uint8_t *block, uint32_t count)
{
    uint32_t words[64];  // with the constants added
    for (; count > 0; count--, block += 64) {
        v128_t x[4];
        for (int i = 0; i < 4; i++) {
            x[i] = sha256_load(block + 16 * i);
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            v128_t constants = wasm_v128_load(Hacl_Hash_SHA2_k224_256 + 4 * i);
            wasm_v128_store(words + 4 * i, wasm_i32x4_add(x[i % 4], constants));
            if (i < 12) {
                x[i % 4] = sha256_schedule(x[i % 4], x[(i + 1) % 4], x[(i + 2) % 4], x[(i + 3) % 4]);
            }
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        uint32_t ab = b ^ c;
        ROUNDS_16(0);
        ROUNDS_16(16);
        ROUNDS_16(32);
        ROUNDS_16(48);
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
}
