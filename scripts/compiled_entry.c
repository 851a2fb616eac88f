// How a system call of a guest enters the compiled kernel: linked into its library.
//
// The engine calls `system_call` on the thread of the guest, without the lock of the interpreter. It
// does what the callback of cffi in hostcalls.py does, without libffi and without a dictionary of
// threads. An `Adapter` is what the table of system calls has for each: it calls a function of Python
// with as many arguments as the call has. Rules: no exception passes through the engine. It goes to
// `failed`, which stores it and returns the address of a trap.
#include "compiled_entry.h"

#include <stdint.h>
#include <structmember.h>

#define SPARES 32
#define WORDS 6

// A value of the engine. The result takes the place of the first one, the number of the call.
struct value {
    uint32_t word;
    uint32_t rest[3];
};

typedef struct {
    PyObject_HEAD
    uint32_t words[WORDS];
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
        for (int i = 0; i < WORDS; i++)
            made->words[i] = values[i + 1].word;
    return (PyObject *)made;
}

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function;
    Py_ssize_t count;
} Adapter;

// Called with a context and the arguments of a system call.
static PyObject *adapt(PyObject *self, PyObject *const *given, size_t flags, PyObject *names)
{
    Adapter *adapter = (Adapter *)self;
    // The first place is for the function called, which may use it.
    PyObject *call[WORDS + 2], *result = NULL;
    Py_ssize_t made = 0;
    if (PyVectorcall_NARGS(flags) != 2 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a system call takes a context and its arguments");
        return NULL;
    }
    call[1] = given[0];
    for (; made < adapter->count; made++) {
        if (Py_IS_TYPE(given[1], &arguments_type))
            call[made + 2] = PyLong_FromUnsignedLong(((Arguments *)given[1])->words[made]);
        else // another caller than a guest
            call[made + 2] = PyObject_GetAttrString(given[1], members[made].name);
        if (call[made + 2] == NULL)
            break;
    }
    if (made == adapter->count)
        result = PyObject_Vectorcall(
            adapter->function, call + 1, (made + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    while (made > 0)
        Py_DECREF(call[--made + 2]);
    return result;
}

static void drop_adapter(PyObject *self)
{
    Py_DECREF(((Adapter *)self)->function);
    PyObject_Free(self);
}

static PyTypeObject adapter_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wasmsand_start.Adapter",
    .tp_doc = "The handler of a system call: calls a function with its arguments.",
    .tp_basicsize = sizeof(Adapter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_dealloc = drop_adapter,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Adapter, call),
};

PyObject *compiled_entry_adapter(PyObject *self, PyObject *given)
{
    PyObject *function;
    Py_ssize_t count;
    Adapter *made;
    if (!PyArg_ParseTuple(given, "On", &function, &count))
        return NULL;
    if (count < 0 || count > WORDS)
        return PyErr_Format(PyExc_ValueError, "a system call has no %zd arguments", count);
    made = PyObject_New(Adapter, &adapter_type);
    if (made != NULL) {
        made->call = adapt;
        made->function = Py_NewRef(function);
        made->count = count;
    }
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

// The memory of a guest: a memoryview. Each function checks addresses against its size once more.

static int open_memory(PyObject *const *given, Py_ssize_t count, Py_ssize_t wanted, int flags,
                       Py_buffer *memory, Py_ssize_t *address)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%zd arguments instead of %zd", count, wanted);
        return -1;
    }
    *address = PyLong_AsSsize_t(given[1]);
    if (*address == -1 && PyErr_Occurred())
        return -1;
    return PyObject_GetBuffer(given[0], memory, flags);
}

static PyObject *outside(void)
{
    PyErr_SetString(PyExc_IndexError, "outside the memory");
    return NULL;
}

PyObject *compiled_entry_read(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer memory;
    Py_ssize_t address, length;
    PyObject *content = NULL;
    if (open_memory(given, count, 3, PyBUF_SIMPLE, &memory, &address) < 0)
        return NULL;
    length = PyLong_AsSsize_t(given[2]);
    if (length != -1 || !PyErr_Occurred()) {
        if (address < 0 || length < 0 || address > memory.len || length > memory.len - address)
            content = outside();
        else
            content = PyBytes_FromStringAndSize((char *)memory.buf + address, length);
    }
    PyBuffer_Release(&memory);
    return content;
}

PyObject *compiled_entry_read_string(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer memory;
    Py_ssize_t address, limit;
    PyObject *text = NULL;
    if (open_memory(given, count, 3, PyBUF_SIMPLE, &memory, &address) < 0)
        return NULL;
    limit = PyLong_AsSsize_t(given[2]);
    if (limit != -1 || !PyErr_Occurred()) {
        if (address < 0 || limit < 0 || address > memory.len) {
            text = Py_NewRef(Py_None);
        } else {
            const char *begin = (char *)memory.buf + address;
            const char *end;
            if (limit > memory.len - address)
                limit = memory.len - address;
            end = memchr(begin, 0, limit);
            text = end == NULL ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(begin, end - begin);
        }
    }
    PyBuffer_Release(&memory);
    return text;
}

PyObject *compiled_entry_write(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer memory, content;
    Py_ssize_t address;
    PyObject *done = NULL;
    if (open_memory(given, count, 3, PyBUF_WRITABLE, &memory, &address) < 0)
        return NULL;
    if (PyObject_GetBuffer(given[2], &content, PyBUF_SIMPLE) == 0) {
        if (address < 0 || address > memory.len || content.len > memory.len - address) {
            done = outside();
        } else {
            memmove((char *)memory.buf + address, content.buf, content.len);
            done = Py_NewRef(Py_None);
        }
        PyBuffer_Release(&content);
    }
    PyBuffer_Release(&memory);
    return done;
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
    return PyType_Ready(&arguments_type) < 0 ? -1 : PyType_Ready(&adapter_type);
}
