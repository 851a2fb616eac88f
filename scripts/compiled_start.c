// Initialises compiled modules: linked into the library of the compiled kernel.
//
// mypyc puts the initialisation function of each module into a capsule. Its own way to call them is
// a shared library per module, each with one function; this one function does for all.
#include "compiled_entry.h"

static PyObject *start(PyObject *self, PyObject *capsule)
{
    PyObject *(*init)(void);
    if (!PyCapsule_CheckExact(capsule)) {
        PyErr_SetString(PyExc_TypeError, "not a capsule");
        return NULL;
    }
    init = (PyObject *(*)(void))PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    return init == NULL ? NULL : init();
}

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef methods[] = {
    {"start", start, METH_O, "Run the initialisation function in a capsule of mypyc."},
    {"open_entry", compiled_entry_open, METH_O, "The address of a callback; see compiled_entry.h."},
    {"adapter", compiled_entry_adapter, METH_VARARGS, "The handler of a system call."},
    {"handle_calls", compiled_entry_handle, METH_O, "What handles system calls of this thread."},
    {"read", FAST(compiled_entry_read), "Read bytes of a memory."},
    {"read_string", FAST(compiled_entry_read_string), "Read a string of a memory."},
    {"write", FAST(compiled_entry_write), "Write bytes to a memory."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wasmsand_start", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit_wasmsand_start(void)
{
    return compiled_entry_ready() < 0 ? NULL : PyModule_Create(&definition);
}
