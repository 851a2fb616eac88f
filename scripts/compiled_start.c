// Initialises compiled modules: linked into the library of the compiled kernel.
//
// mypyc puts the initialisation function of each module into a capsule. Its own way to call them is
// a shared library per module, each with one function; this one function does for all.
#include <Python.h>

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

static PyMethodDef methods[] = {
    {"start", start, METH_O, "Run the initialisation function in a capsule of mypyc."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wasmsand_start", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit_wasmsand_start(void)
{
    return PyModule_Create(&definition);
}
