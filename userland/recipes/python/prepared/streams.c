
/* Appended to Modules/_io/textio.c: whether a text stream has to be flushed. */
#include "pycore_prepared.h"

int _PyPrepared_IsFlushed(PyObject *stream)
{
	if (stream == Py_None) return 1;
	/* A derived class has another function here. */
	if (Py_TYPE(stream)->tp_dealloc != textiowrapper_dealloc) return 0;
	textio *self = (textio *)stream;
	return self->ok > 0 && !self->detached && !self->pending_bytes && self->buffer
		&& _PyPrepared_IsWritten(self->buffer);
}
