/* Cells of a session that need nothing special, served without Python code.
 *
 * A request runs once through everything that it uses, and finds little of it in the processor's
 * caches: so what counts is how much code there is. The driver (src/wasmsand/sdk/python_driver.py)
 * can serve every request alone. This file does the same for a plain cell: it reads the request,
 * compiles and runs the code, and writes the answer, if the value is a number, a short text or
 * nothing. Whatever is not plain is handed to the driver's functions: other values, exceptions,
 * awaits, magics, figures, a display hook of the program, unwritten output, further threads. The
 * state is the driver's: its global variables are used here by their names. Appended to main.c. */
#include "pycore_long.h"
#include "pycore_pylifecycle.h"

enum { REQUEST_MAX = 8192, TOKEN_AT = 4, ASKS_AT = 21, CODE_AT = 24, TEXT_MAX = 2048, BITS_MAX = 1024 };
enum { ANSWER_MAX = 4 * TEXT_MAX + 512 };

/* A global variable of the driver; borrowed. NULL, with an exception, if the driver has none. */
static PyObject *driver_name(const char *name)
{
	PyObject *value = PyDict_GetItemString(session.names, name);
	if (!value && !PyErr_Occurred()) PyErr_SetString(PyExc_NameError, name);
	return value;
}

static int set_driver_name(const char *name, PyObject *value)
{
	return value ? PyDict_SetItemString(session.names, name, value) : -1;
}

/* A request line of which nothing is missing, and that no other one follows. */
static int is_whole_request(const char *line, ssize_t size)
{
	return size > CODE_AT + 1 && !memcmp(line, "run ", 4) && line[CODE_AT - 1] == '"'
		&& memchr(line, '\n', size) == line + size - 1 && line[size - 2] == '"';
}

static PyObject *code_of(const char *line, ssize_t size)
{
	ssize_t length = size - 2 - CODE_AT;
	if (length < 0) return PyErr_Format(PyExc_ValueError, "no code");
	if (!memchr(line + CODE_AT, '\\', length)) return PyUnicode_DecodeASCII(line + CODE_AT, length, 0);
	PyObject *scan = driver_name("scanstring");
	PyObject *found = scan ? PyObject_CallFunction(scan, "s#i", line, (Py_ssize_t)size, CODE_AT) : 0;
	PyObject *code = found && PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2
		? Py_NewRef(PyTuple_GET_ITEM(found, 0)) : 0;
	Py_XDECREF(found);
	return code;
}

/* What the driver does before it runs code: see `step` there. */
static int begin_cell(const char *line, PyObject *code)
{
	PyObject *token = PyUnicode_DecodeASCII(line + TOKEN_AT, 16, 0);
	PyObject *inputs = driver_name("inputs"), *program = driver_name("main");
	int failed = !token || !inputs || !program
		|| set_driver_name("token", token) < 0
		|| set_driver_name("asks", line[ASKS_AT] == '1' ? Py_True : Py_False) < 0
		|| set_driver_name("was_interrupted", Py_False) < 0
		|| set_driver_name("displayed", Py_GetConstantBorrowed(Py_CONSTANT_ZERO)) < 0
		|| PyList_Append(inputs, code) < 0
		|| PyDict_PopString(program, "__warningregistry__", 0) < 0;
	Py_XDECREF(token);
	return failed ? -1 : 0;
}

/* Tracebacks show the lines of the cell. */
static int remember_lines(PyObject *code, PyObject *name)
{
	PyObject *lines = PyUnicode_Splitlines(code, 1);
	PyObject *module = driver_name("linecache");
	PyObject *cache = module ? PyObject_GetAttrString(module, "cache") : 0;
	PyObject *entry = lines ? Py_BuildValue("nOOO", PyUnicode_GET_LENGTH(code), Py_None, lines, name) : 0;
	int failed = !cache || !entry || PyObject_SetItem(cache, name, entry) < 0;
	Py_XDECREF(entry);
	Py_XDECREF(cache);
	Py_XDECREF(lines);
	return failed ? -1 : 0;
}

static int is_coroutine(PyObject *code)
{
	return code != Py_None && ((PyCodeObject *)code)->co_flags & CO_COROUTINE;
}

/* As eval() does it. */
static PyObject *evaluated(PyObject *code)
{
	PyObject *program = driver_name("main");
	if (!program || PySys_Audit("exec", "O", code) < 0) return NULL;
	int has_builtins = PyDict_ContainsString(program, "__builtins__");
	if (has_builtins < 0) return NULL;
	if (!has_builtins && PyDict_SetItemString(program, "__builtins__", PyEval_GetBuiltins()) < 0)
		return NULL;
	return PyEval_EvalCode(code, program, program);
}

/* The value of a compiled cell; None if there is none to show. */
static PyObject *value_of(PyObject *cell, PyObject *code)
{
	PyObject *statements = PyTuple_GET_ITEM(cell, 0), *expression = PyTuple_GET_ITEM(cell, 1);
	if (statements != Py_None) {
		PyObject *done = evaluated(statements);
		if (!done) return NULL;
		Py_DECREF(done);
	}
	if (expression == Py_None) Py_RETURN_NONE;
	PyObject *value = evaluated(expression);
	if (!value || value == Py_None) return value;
	if (PyUnicode_FindChar(code, ';', 0, PyUnicode_GET_LENGTH(code), 1) < 0) return value;
	PyObject *ask = driver_name("is_silenced"), *lines = PyUnicode_Splitlines(code, 1);
	PyObject *line = lines ? PySequence_GetItem(lines,
		PyLong_AsLong(PyTuple_GET_ITEM(cell, 2)) - 1) : 0;
	PyObject *answer = ask && line
		? PyObject_CallFunctionObjArgs(ask, line, PyTuple_GET_ITEM(cell, 3), NULL) : 0;
	int silenced = answer ? PyObject_IsTrue(answer) : -1;
	Py_XDECREF(answer);
	Py_XDECREF(line);
	Py_XDECREF(lines);
	if (silenced) Py_CLEAR(value);
	return silenced == 1 ? Py_NewRef(Py_None) : value;
}

/* Whether nothing has to happen at the end of the cell, except that it is answered. */
static int ends_plainly(PyObject *value)
{
	static const char *const streams[] = { "stdout", "stderr", "__stdout__", "__stderr__" };
	PyThreadState *first = PyInterpreterState_ThreadHead(_PyInterpreterState_GET());
	if (first && PyThreadState_Next(first)) return 0;
	if (PyDict_ContainsString(PyImport_GetModuleDict(), "matplotlib.pyplot")) return 0;
	PyObject *seen = NULL;
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		PyObject *stream = PySys_GetObject(streams[i]);
		if (!stream) return 0;
		if (stream != seen && !_PyPrepared_IsFlushed(stream)) return 0;
		if (i == 0) seen = stream;
	}
	if (value == Py_None) return 1;
	PyObject *hook = PyDict_GetItemString(session.names, "display_hook");
	return hook && PySys_GetObject("displayhook") == hook;
}

/* `keep` of the driver. 0 if the program has put something else in the place of `Out`. */
static int kept(PyObject *value, PyObject *number)
{
	PyObject *names = PyEval_GetBuiltins(), *last = driver_name("last_kept");
	PyObject *out = PyDict_GetItemString(names, "Out");
	if (!last || !out || !PyDict_CheckExact(out)) return 0;
	if (PyDict_GetItemString(names, "_") == last || (last == Py_None
			&& !PyDict_GetItemString(names, "_"))) {
		PyObject *second = PyDict_GetItemString(names, "__");
		if (PyDict_SetItemString(names, "___", second ? second : Py_None) < 0
			|| PyDict_SetItemString(names, "__", last) < 0
			|| PyDict_SetItemString(names, "_", value) < 0
			|| set_driver_name("last_kept", value) < 0) return -1;
	}
	PyObject *old = PyLong_FromLong(PyLong_AsLong(number) - 20);
	int failed = !old || PyDict_SetItem(out, number, value) < 0 || PyDict_Pop(out, old, 0) < 0;
	Py_XDECREF(old);
	return failed ? -1 : 1;
}

/* What an answer shows of a plain value: its repr, and its JSON. 0 if it is not plain. */
static int describe(PyObject *value, PyObject **shown, PyObject **json)
{
	*shown = *json = NULL;
	if (PyBool_Check(value)) {
		*json = PyUnicode_FromString(value == Py_True ? "true" : "false");
	} else if (PyLong_CheckExact(value)) {
		if (_PyLong_NumBits(value) > BITS_MAX) return 0;
	} else if (PyFloat_CheckExact(value)) {
		double number = PyFloat_AS_DOUBLE(value);
		if (number - number != 0) return 0; /* not finite */
	} else if (PyUnicode_CheckExact(value)) {
		if (!PyUnicode_IS_ASCII(value) || PyUnicode_GET_LENGTH(value) > TEXT_MAX / 8) return 0;
		PyObject *encode = driver_name("encode_basestring");
		*json = encode ? PyObject_CallOneArg(encode, value) : NULL;
		if (!*json) return -1;
	} else {
		return 0;
	}
	*shown = PyObject_Repr(value);
	if (*shown && !*json) *json = Py_NewRef(*shown);
	if (!*shown || !*json) return -1;
	return PyUnicode_IS_ASCII(*shown) && PyUnicode_GET_LENGTH(*shown) <= TEXT_MAX
		&& PyUnicode_Check(*json) && PyUnicode_IS_ASCII(*json) && PyUnicode_GET_LENGTH(*json) <= TEXT_MAX;
}

static char *put_base64(char *to, PyObject *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *from = PyUnicode_1BYTE_DATA(text);
	Py_ssize_t left = PyUnicode_GET_LENGTH(text);
	for (; left > 0; left -= 3, from += 3) {
		unsigned bits = from[0] << 16 | (left > 1 ? from[1] << 8 : 0) | (left > 2 ? from[2] : 0);
		*to++ = digits[bits >> 18];
		*to++ = digits[bits >> 12 & 63];
		*to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[bits & 63] : '=';
	}
	return to;
}

/* Write an answer, completely: see `send` of the driver. */
static void send_answer(const char *token, long at, PyObject *shown, PyObject *json)
{
	static char line[ANSWER_MAX];
	char *end = line + sprintf(line, "\n{\"token\": \"%.16s\", \"kind\": \"answer\", \"at\": %ld, "
		"\"segments\": [\"%s\"]}\t", token, at, shown ? "repr\", \"value" : "");
	if (shown) {
		end = put_base64(end, shown);
		*end++ = '\t';
		end = put_base64(end, json);
	}
	*end++ = '\n';
	for (char *rest = line; rest < end;) {
		ssize_t written = write(session.answers, rest, end - rest);
		if (written >= 0) rest += written;
		else if (errno != EINTR) _exit(1); /* the program has closed the descriptor */
	}
}

/* Hand a cell to the driver: call answer_to(number, function, ...). */
static int leave_to_driver(PyObject *number, const char *function, PyObject *first, PyObject *second,
	PyObject *third, PyObject *fourth)
{
	PyObject *answer = driver_name("answer_to"), *work = driver_name(function);
	PyObject *done = answer && work ? PyObject_CallFunctionObjArgs(answer, number, work, first, second,
		third, fourth, NULL) : NULL;
	if (!done) return -1;
	Py_DECREF(done);
	return 0;
}

/* Answer for a cell that has run: with its value, or with the current exception if that is NULL. */
static int answer_cell(const char *token, PyObject *number, PyObject *value)
{
	PyObject *shown = NULL, *json = NULL, *error = NULL;
	int plain = value && ends_plainly(value);
	if (plain && value != Py_None) {
		plain = describe(value, &shown, &json);
		if (plain > 0) plain = kept(value, number);
	}
	PyObject *displayed = plain > 0 ? driver_name("displayed") : NULL;
	long at = displayed ? PyLong_AsLong(displayed) : 0;
	int result = -1;
	/* The program is over: an interrupt from here on is for nobody. */
	if (plain > 0 && !PyErr_Occurred() && set_driver_name("running", Py_False) == 0) {
		send_answer(token, at, shown, json);
		result = 0;
	} else {
		error = PyErr_GetRaisedException();
		result = leave_to_driver(number, "outcome", error ? Py_None : value, error ? error : Py_None,
			NULL, NULL);
	}
	Py_XDECREF(error);
	Py_XDECREF(shown);
	Py_XDECREF(json);
	return result;
}

/* Compile and run a cell, and answer. */
static int run_cell(const char *token, PyObject *code, PyObject *number)
{
	PyObject *name = PyUnicode_FromFormat("<run %S>", number);
	PyObject *arguments = name && remember_lines(code, name) == 0 ? PyTuple_Pack(2, code, name) : NULL;
	PyObject *cell = arguments && set_driver_name("running", Py_True) == 0
		? compile_cell(NULL, arguments) : NULL;
	PyObject *error = cell ? NULL : PyErr_GetRaisedException();
	int result;
	if (!cell || is_coroutine(PyTuple_GET_ITEM(cell, 0)) || is_coroutine(PyTuple_GET_ITEM(cell, 1))) {
		result = leave_to_driver(number, "execute", code, number, cell ? cell : Py_None,
			error ? error : Py_None);
	} else {
		PyObject *value = value_of(cell, code);
		result = answer_cell(token, number, value);
		Py_XDECREF(value);
	}
	Py_XDECREF(error);
	Py_XDECREF(cell);
	Py_XDECREF(arguments);
	Py_XDECREF(name);
	return result;
}

/* Call the driver's step with what was received. */
static PyObject *step_with(const char *received, ssize_t size)
{
	return PyObject_CallFunction(session.step, "y#", received, (Py_ssize_t)size);
}

/* Serve what has arrived. The result is that of the driver's step: False if there will be no more,
 * True if it has nothing left, None if it has received a part of a request. */
static PyObject *session_step(void)
{
	static char received[REQUEST_MAX];
	if (!session.is_clean) return PyObject_CallNoArgs(session.step);
	ssize_t size = read(session.descriptor, received, sizeof received);
	if (size < 0 && errno == EINTR) Py_RETURN_TRUE;
	if (size < 0) _exit(1); /* the program has closed the descriptor */
	if (!size) Py_RETURN_FALSE;
	if (!is_whole_request(received, size)) return step_with(received, size);
	PyObject *code = code_of(received, size);
	if (!code) {
		PyErr_Clear();
		return step_with(received, size);
	}
	PyObject *numbers = driver_name("numbers"), *number = NULL;
	int failed = !numbers || begin_cell(received, code) < 0 || !(number = PyIter_Next(numbers))
		|| run_cell(received + TOKEN_AT, code, number) < 0;
	Py_XDECREF(number);
	Py_DECREF(code);
	if (!failed) Py_RETURN_TRUE;
	if (PyErr_ExceptionMatches(PyExc_OSError)) _exit(1);
	return NULL;
}
