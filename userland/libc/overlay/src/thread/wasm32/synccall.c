#include "pthread_impl.h"

void __synccall(void (*function)(void *), void *context)
{
	function(context);
}
