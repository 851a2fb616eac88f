/* Compiling a cell of a session: statements, and perhaps an expression whose value is shown.
 *
 * compile() can only split them by way of the objects of `ast`, which takes longer than all the
 * rest. Appended to main.c. */
#include "pycore_ast.h"
#include "pycore_compile.h"
#include "pycore_parser.h"
#include "pycore_pyarena.h"

static PyObject *compiled_part(mod_ty part, PyObject *name, PyArena *arena)
{
	PyCompilerFlags flags = _PyCompilerFlags_INIT;
	flags.cf_flags = PyCF_ALLOW_TOP_LEVEL_AWAIT;
	return part ? (PyObject *)_PyAST_Compile(part, name, &flags, -1, arena) : NULL;
}

static PyObject *compiled_cell(const char *text, PyObject *name, PyArena *arena)
{
	PyCompilerFlags flags = _PyCompilerFlags_INIT;
	flags.cf_flags = PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE;
	mod_ty module = _PyParser_ASTFromString(text, name, Py_file_input, &flags, arena);
	if (!module) return NULL;

	asdl_stmt_seq *body = module->v.Module.body;
	Py_ssize_t count = asdl_seq_LEN(body);
	stmt_ty last = count ? asdl_seq_GET(body, count - 1) : NULL;
	if (last && last->kind != Expr_kind) last = NULL;
	if (last) body->size = --count;

	PyObject *statements = NULL, *expression = NULL;
	if (!count) statements = Py_NewRef(Py_None);
	else statements = compiled_part(module, name, arena);
	if (!statements) return NULL;
	if (!last) expression = Py_NewRef(Py_None);
	else expression = compiled_part(_PyAST_Expression(last->v.Expr.value, arena), name, arena);
	if (!expression) {
		Py_DECREF(statements);
		return NULL;
	}
	return Py_BuildValue("NNii", statements, expression,
		last ? last->end_lineno : 0, last ? last->end_col_offset : 0);
}

static PyObject *compile_cell(PyObject *self, PyObject *arguments)
{
	PyObject *source, *name;
	Py_ssize_t size;
	if (!PyArg_ParseTuple(arguments, "UU:_compile_cell", &source, &name)) return NULL;
	const char *text = PyUnicode_AsUTF8AndSize(source, &size);
	if (!text) return NULL;
	if (strlen(text) != (size_t)size) {
		PyErr_SetString(PyExc_SyntaxError, "source code string cannot contain null bytes");
		return NULL;
	}
	PyArena *arena = _PyArena_New();
	if (!arena) return NULL;
	PyObject *cell = compiled_cell(text, name, arena);
	_PyArena_Free(arena);
	return cell;
}
