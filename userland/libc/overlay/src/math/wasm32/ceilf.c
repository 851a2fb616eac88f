#include <math.h>

float ceilf(float x)
{
	return __builtin_elementwise_ceil(x);
}
