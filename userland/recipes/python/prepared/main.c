/* The Python interpreter's main, with a checkpoint.
 *
 * When the image is made, the interpreter is initialised, many modules of the standard library
 * are imported, and that is stored (prepare). Every later start begins there and only does what
 * depends on how it was started (resumed_main): options, environment, standard streams, signals.
 * An option or a variable that would have changed the preparation is left to the plain
 * interpreter, which is this program without the stored memory.
 *
 * With heap.c, cells.c and session.c it takes the place of Programs/python.c. The others are appended to files of
 * CPython, whose static functions they use: config.c to Python/initconfig.c, lifecycle.c to
 * Python/pylifecycle.c, run.c to Modules/main.c, signals.c to Modules/signalmodule.c, streams.c to
 * Modules/_io/textio.c, buffers.c to Modules/_io/bufferedio.c. ../_prepared.py
 * is the part that is easier said in Python. */
#include "Python.h"
#include "pycore_initconfig.h"
#include "pycore_codecs.h"
#include "pycore_interp.h"
#include "pycore_pystate.h"
#include "pycore_prepared.h"
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include "checkpoint.h"

/* What platform.libc_ver() looks for in the program's file, and with it CPython's own tests, which
 * know what musl does differently. */
__attribute__((used)) static const char libc_name[] = "musl-1.2.5";

/* Variables that a start from the checkpoint can follow. */
static const char *const followed_variables[] = {
	"PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUNBUFFERED",
};

/* A variable of OpenSSL that was followed when the library was imported. */
static const char followed_once[] = "OPENSSL_CONF=";

/* Where the program is installed: the small interpreter and the full one take each other's place
 * in /usr/bin. */
static const char *const installed[] = {
	"/usr/bin/python3", "/usr/bin/python", "/usr/bin/python3.14",
	"/bin/python3", "/bin/python", "/bin/python3.14",
	"/usr/libexec/python3", "/usr/libexec/python3-full",
};

static PyObject *resume_function, *stored_names;

static _Noreturn void fail(void)
{
	PyErr_Print();
	exit(1);
}

static void require(PyStatus status)
{
	if (PyStatus_Exception(status)) Py_ExitStatusException(status);
}

static void settle_heap(void); /* in heap.c */
static PyObject *compile_cell(PyObject *self, PyObject *arguments); /* in cells.c */

/* A session: a function that is called whenever a descriptor can be read. Between the calls there
 * is nothing on the stack, so the process can be copied: see checkpoint_rest. */
static struct {
	PyObject *step;
	PyObject *names; /* the driver's global variables; NULL if it serves every request itself */
	int descriptor, answers;
	int is_clean; /* whether `step` has used all that it has received */
	PyThreadState *thread;
} session;

static PyObject *session_step(void); /* in session.c */

static PyObject *begin_session(PyObject *self, PyObject *arguments)
{
	PyObject *step, *names = NULL;
	int descriptor, answers = -1;
	if (!PyArg_ParseTuple(arguments, "iO|iO!:_serve_session", &descriptor, &step, &answers,
			&PyDict_Type, &names)) return NULL;
	session.descriptor = descriptor;
	session.answers = answers;
	session.is_clean = names != NULL;
	Py_XSETREF(session.step, Py_NewRef(step));
	Py_XSETREF(session.names, Py_XNewRef(names));
	Py_RETURN_NONE;
}

static PyMethodDef begin_session_method = {
	"_serve_session", begin_session, METH_VARARGS,
	"_serve_session(descriptor, step, answers, names): when the program has ended, call step() "
	"whenever the descriptor can be read, until it returns False. With answers, a descriptor, and "
	"names, the driver's global variables, plain cells are served without a call; then step gets "
	"what was received, and returns None if it has not used all of it.",
};

static PyMethodDef compile_cell_method = {
	"_compile_cell", compile_cell, METH_VARARGS,
	"_compile_cell(source, name): the code of the statements, or None; the code of the expression "
	"at the end, or None; the line and the column where the expression ends.",
};

static int call_steps(void)
{
	for (;;) {
		session.thread = PyEval_SaveThread();
		checkpoint_rest(session.descriptor);
		PyEval_RestoreThread(session.thread);
		/* A signal's handler may raise an exception, which is nobody's now. */
		if (PyErr_CheckSignals() < 0) PyErr_Clear();
		PyObject *more = session_step();
		if (!more) {
			PyErr_Print();
			return 1;
		}
		int is_over = more == Py_False;
		session.is_clean = session.names && more == Py_True;
		Py_DECREF(more);
		if (is_over) return 0;
	}
}

static int serve_copy(void)
{
	PyEval_RestoreThread(session.thread);
	RAND_poll(); /* or it would draw the same numbers as the process that was copied */
	return _PyPrepared_EndMain(stored_names, call_steps());
}

int _PyPrepared_ServeSession(void)
{
	if (!session.step) return 0;
	PyInterpreterState *interpreter = _PyInterpreterState_GET();
	if (_PyInterpreterState_SetRunningMain(interpreter) < 0) PyErr_Clear();
	rested_main = serve_copy;
	return call_steps();
}

static void prepare(void)
{
	/* OpenSSL is imported with the rest; at the end it would free piece by piece what a process
	 * shares with all others. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);

	PyConfig config;
	PyConfig_InitPythonConfig(&config);
	config.parse_argv = 0;
	config.install_signal_handlers = 0;
	/* The hash seed is drawn from the kernel's random numbers. When the image is made these are
	 * always the same; a host that prepares an interpreter later gives it others: see
	 * docs/decisions/0011-one-hash-seed.md. */
	require(PyConfig_SetBytesString(&config, &config.program_name, "/usr/bin/python3"));
	require(Py_InitializeFromConfig(&config));
	PyConfig_Clear(&config);

	PyObject *module = PyImport_ImportModule("_prepared");
	if (!module) fail();
	PyObject *done = PyObject_CallMethod(module, "prepare", NULL);
	resume_function = PyObject_GetAttrString(module, "resume");
	stored_names = PyObject_GetAttrString(module, "names");
	if (!done || !resume_function || !stored_names) fail();
	Py_DECREF(done);
	Py_DECREF(module);
	PyObject *serve = PyCFunction_New(&begin_session_method, NULL);
	PyObject *compile = PyCFunction_New(&compile_cell_method, NULL);
	if (!serve || PySys_SetObject("_serve_session", serve) < 0) fail();
	if (!compile || PySys_SetObject("_compile_cell", compile) < 0) fail();
	settle_heap();
	_PyPrepared_ResetSignals();
}

int main(int argc, char **argv)
{
	if (checkpoint_wanted()) {
		prepare();
		checkpoint();
	}
	return Py_BytesMain(argc, argv);
}

/* Where the shell found the program, if that is where it is installed: else there may be a
 * virtual environment around it, which the plain interpreter looks for. */
static const char *installed_program(const char *name)
{
	static char found[64];
	const char *directories = getenv("PATH");
	if (strchr(name, '/')) {
		snprintf(found, sizeof found, "%s", name);
	} else {
		for (;;) {
			if (!directories) return 0;
			size_t length = strcspn(directories, ":");
			if (length + strlen(name) + 2 > sizeof found) return 0;
			snprintf(found, sizeof found, "%.*s/%s", (int)length, directories, name);
			if (!access(found, X_OK)) break;
			if (!directories[length]) return 0;
			directories += length + 1;
		}
	}
	for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
		if (!strcmp(found, installed[i])) return found;
	return 0;
}

/* The path of this program without the stored memory, which is beside it. */
static const char *plain_interpreter(void)
{
	static const char suffix[] = "-plain";
	static char path[256];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof suffix);
	if (length < 0) length = 0;
	memcpy(path + length, suffix, sizeof suffix);
	return path;
}

static int environment_can_be_followed(char **environment)
{
	for (; *environment; environment++) {
		if (!strncmp(*environment, followed_once, sizeof followed_once - 1)) return 0;
		if (strncmp(*environment, "PYTHON", 6)) continue;
		size_t length = strcspn(*environment, "=");
		int followed = 0;
		for (size_t i = 0; i < sizeof followed_variables / sizeof *followed_variables; i++)
			followed |= strlen(followed_variables[i]) == length
				&& !memcmp(*environment, followed_variables[i], length);
		if (!followed) return 0;
	}
	/* In the C locale Python has another mode for text. */
	const char *locale = setlocale(LC_CTYPE, "");
	return locale && strcmp(locale, "C") && strcmp(locale, "POSIX");
}

static PyObject *list_of(const PyWideStringList *strings)
{
	PyObject *list = PyList_New(strings->length);
	for (Py_ssize_t i = 0; list && i < strings->length; i++) {
		PyObject *string = PyUnicode_FromWideChar(strings->items[i], -1);
		if (!string) Py_CLEAR(list);
		else PyList_SET_ITEM(list, i, string);
	}
	return list;
}

static void set_sys(const char *name, PyObject *value)
{
	if (!value || PySys_SetObject(name, value) < 0) fail();
	Py_DECREF(value);
}

static void set_flag(const char *name, int value)
{
	PyObject *number = PyLong_FromLong(value);
	if (!number || PyConfig_Set(name, number) < 0) fail();
	Py_DECREF(number);
}

/* The encoding of the standard streams by the name that its codec has. */
static void name_encoding(PyConfig *config)
{
	char encoding[64];
	if (wcstombs(encoding, config->stdio_encoding, sizeof encoding) >= sizeof encoding) return;
	PyObject *codec = _PyCodec_Lookup(encoding);
	PyObject *name = codec ? PyObject_GetAttrString(codec, "name") : 0;
	const char *text = name ? PyUnicode_AsUTF8(name) : 0;
	if (!text) fail();
	require(PyConfig_SetBytesString(config, &config->stdio_encoding, text));
	Py_DECREF(name);
	Py_DECREF(codec);
}

static void apply(PyConfig *config, const char *program)
{
	set_sys("argv", list_of(&config->argv));
	set_sys("executable", PyUnicode_FromString(program));
	set_sys("_base_executable", PyUnicode_FromString(program));
	require(PyConfig_SetBytesString(config, &config->executable, program));
	if (!config->write_bytecode) {
		set_flag("write_bytecode", 0);
		set_sys("dont_write_bytecode", Py_NewRef(Py_True));
	}
	if (config->inspect) set_flag("inspect", config->inspect);
	if (config->interactive) set_flag("interactive", config->interactive);
	if (config->quiet) set_flag("quiet", config->quiet);
}

int resumed_main(int argc, char **argv, char **envp)
{
	const char *program = argc ? installed_program(argv[0]) : 0;
	if (!program || !environment_can_be_followed(envp)) goto plain;

	PyConfig *config = (PyConfig *)_PyInterpreterState_GetConfig(_PyInterpreterState_GET());
	require(PyConfig_SetBytesArgv(config, argc, argv));
	if (!_PyPrepared_CanFollow(&config->argv)) goto plain;
	set_sys("orig_argv", list_of(&config->argv));
	require(PyConfig_SetBytesString(config, &config->program_name, argv[0]));
	require(_PyPrepared_ReadConfig(config));
	apply(config, program);

	name_encoding(config);
	if (_PyPrepared_InstallSignals() < 0) fail();
	require(_PyPrepared_OpenStreams());
	require(_PyPrepared_AddMain());
	PyObject *done = PyObject_CallFunction(resume_function, "u", config->pythonpath_env
		? config->pythonpath_env : L"");
	if (!done) fail();
	Py_DECREF(done);
	return _PyPrepared_RunMain(stored_names);

plain:
	execv(plain_interpreter(), argv);
	perror(plain_interpreter());
	return 127;
}
