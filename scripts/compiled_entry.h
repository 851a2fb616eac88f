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

// Bytes of a memory (a memoryview, an address, a length). IndexError if they are not in it.
PyObject *compiled_entry_read(PyObject *self, PyObject *const *given, Py_ssize_t count);

// The bytes before the next NUL (a memoryview, an address, a limit). None if there is none.
PyObject *compiled_entry_read_string(PyObject *self, PyObject *const *given, Py_ssize_t count);

// Write bytes to a memory (a memoryview, an address, the bytes): all, or IndexError.
PyObject *compiled_entry_write(PyObject *self, PyObject *const *given, Py_ssize_t count);

int compiled_entry_ready(void);
