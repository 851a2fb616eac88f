
/* Appended to Modules/_io/bufferedio.c: whether a buffer holds what is not written yet. */
#include "pycore_prepared.h"

int _PyPrepared_IsWritten(PyObject *buffer)
{
	if (Py_TYPE(buffer)->tp_dealloc != buffered_dealloc) return 0;
	buffered *self = (buffered *)buffer;
	return self->ok > 0 && !self->detached && !(VALID_WRITE_BUFFER(self) && self->write_pos < self->write_end);
}
