#include <math.h>

float copysignf(float x, float y)
{
	return __builtin_copysignf(x, y);
}
