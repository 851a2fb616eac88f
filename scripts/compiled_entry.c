// How a system call of a guest enters the compiled kernel: linked into its library.
//
// The engine calls `system_call` on the thread of the guest, without the lock of the interpreter. It
// does what the callback of cffi in hostcalls.py does, without libffi and without a dictionary of
// threads. Rules: no exception passes through the engine. It goes to `failed`, which stores it and
// returns the address of a trap.
#include "compiled_entry.h"

#include <stdint.h>
#include <structmember.h>

#define SPARES 32

// A value of the engine. The result takes the place of the first one, the number of the call.
struct value {
    uint32_t word;
    uint32_t rest[3];
};

typedef struct {
    PyObject_HEAD
    uint32_t words[6];
} Arguments;

#define WORD(name, index) \
    {name, T_UINT, offsetof(Arguments, words) + (index) * sizeof(uint32_t), READONLY, NULL}

static PyMemberDef members[] = {
    WORD("a", 0), WORD("b", 1), WORD("c", 2), WORD("d", 3), WORD("e", 4), WORD("f", 5), {NULL},
};

// Objects to use again, and their number. The lock of the interpreter guards them.
static Arguments *spare[SPARES];
static int spares;

static void drop_arguments(PyObject *self)
{
    if (spares < SPARES)
        spare[spares++] = (Arguments *)self;
    else
        PyObject_Free(self);
}

static PyTypeObject arguments_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wasmsand_start.Arguments",
    .tp_doc = "The six arguments of a system call.",
    .tp_basicsize = sizeof(Arguments),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = drop_arguments,
    .tp_members = members,
};

static PyObject *arguments_of(const struct value *values)
{
    Arguments *made;
    if (spares > 0)
        made = (Arguments *)PyObject_Init((PyObject *)spare[--spares], &arguments_type);
    else
        made = PyObject_New(Arguments, &arguments_type);
    if (made != NULL)
        for (int i = 0; i < 6; i++)
            made->words[i] = values[i + 1].word;
    return (PyObject *)made;
}

// What handles the calls of the guest on this thread, or NULL.
static _Thread_local PyObject *handler;
static PyObject *failed;

// The trap for the exception that is set.
static void *trap_for_error(void)
{
    PyObject *kind, *error, *traceback, *address;
    void *trap = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    address = PyObject_CallFunctionObjArgs(
        failed, kind, error, traceback == NULL ? Py_None : traceback, NULL);
    if (address != NULL) {
        trap = PyLong_AsVoidPtr(address);
        Py_DECREF(address);
    }
    if (trap == NULL)
        PyErr_WriteUnraisable(failed);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return trap;
}

// The result of the call; -1 with an exception set if there is none.
static long handled(const struct value *values)
{
    long result = -1;
    PyObject *own = handler, *answer;
    PyObject *call[] = {PyLong_FromUnsignedLong(values[0].word), arguments_of(values)};
    if (own == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "no guest runs on this thread");
    } else if (call[0] != NULL && call[1] != NULL) {
        Py_INCREF(own);
        answer = PyObject_Vectorcall(own, call, 2, NULL);
        Py_DECREF(own);
        if (answer != NULL) {
            result = PyLong_AsLong(answer);
            Py_DECREF(answer);
            if (result < INT32_MIN || result > INT32_MAX) {
                PyErr_SetString(PyExc_OverflowError, "the result of a system call has 32 bits");
                result = -1;
            }
        }
    }
    Py_XDECREF(call[0]);
    Py_XDECREF(call[1]);
    return result;
}

static void *system_call(void *environment, void *caller, struct value *values, size_t count)
{
    PyGILState_STATE state = PyGILState_Ensure();
    void *trap = NULL;
    long result = handled(values);
    if (result == -1 && PyErr_Occurred())
        trap = trap_for_error();
    values[0].word = (uint32_t)result;
    PyGILState_Release(state);
    return trap;
}

PyObject *compiled_entry_handle(PyObject *self, PyObject *new_handler)
{
    PyObject *before = handler;
    handler = new_handler == Py_None ? NULL : Py_NewRef(new_handler);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyObject *compiled_entry_open(PyObject *self, PyObject *on_failure)
{
    Py_XDECREF(failed);
    failed = Py_NewRef(on_failure);
    return PyLong_FromVoidPtr((void *)system_call);
}

int compiled_entry_ready(void)
{
    return PyType_Ready(&arguments_type);
}
