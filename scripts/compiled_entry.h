// What the starter module offers of compiled_entry.c.
#include <Python.h>

// Let this object handle the system calls of the guest on this thread; None: there is no guest.
PyObject *compiled_entry_handle(PyObject *self, PyObject *handler);

// The address of the function that the engine is to call; the argument is called with an exception
// and returns the address of a trap.
PyObject *compiled_entry_open(PyObject *self, PyObject *on_failure);

// An object that is called with a context and the arguments of a system call. It calls the function
// (the first argument of this one) with the context and as many of them as the second says.
PyObject *compiled_entry_adapter(PyObject *self, PyObject *given);

int compiled_entry_ready(void);
