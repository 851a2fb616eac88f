/* Jumps: across frames, repeated, nested, from a loop, through a function pointer. */
#include <setjmp.h>
#include "check.h"

static jmp_buf outer, inner;

static void deep(int levels, jmp_buf target, int value)
{
	volatile char frame[64];
	frame[0] = levels;
	if (!levels) longjmp(target, value);
	deep(levels - 1, target, value);
	CHECK(frame[0] == levels);
}

static int through_inner(void)
{
	/* A frame with a setjmp of its own, through which the jump must pass. */
	if (setjmp(inner)) return -1;
	deep(10, outer, 5);
	return 0;
}

static void nested(void)
{
	int value = setjmp(outer);
	if (!value) {
		through_inner();
		CHECK(0);
	}
	CHECK(value == 5);
}

static void repeated(void)
{
	volatile int count = 0;
	int value = setjmp(outer);
	CHECK(value == count);
	if (count < 1000) {
		count++;
		deep(count % 7, outer, count);
	}
}

static void in_loop(void)
{
	int sum = 0;
	for (int i = 1; i <= 100; i++) {
		jmp_buf local;
		if (!setjmp(local)) longjmp(local, i);
		sum += i;
	}
	CHECK(sum == 5050);
}

static void zero_becomes_one(void)
{
	int value = setjmp(outer);
	if (!value) longjmp(outer, 0);
	CHECK(value == 1);
}

static void by_pointer(void)
{
	void (*volatile jump)(jmp_buf, int) = longjmp;
	int value = _setjmp(outer);
	if (!value) jump(outer, 9);
	CHECK(value == 9);
}

int main(void)
{
	nested();
	repeated();
	in_loop();
	zero_becomes_one();
	by_pointer();
	return 0;
}
