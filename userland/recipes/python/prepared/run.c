
/* Appended to Modules/main.c: as Py_RunMain, for a start from the checkpoint. */
#include "pycore_prepared.h"

int _PyPrepared_RunMain(PyObject *stored_names)
{
	int exitcode = 0;
	_PyRuntime.signals.unhandled_keyboard_interrupt = 0;
	pymain_run_python(&exitcode);
	if (!exitcode) exitcode = _PyPrepared_ServeSession();
	return _PyPrepared_EndMain(stored_names, exitcode);
}

int _PyPrepared_EndMain(PyObject *stored_names, int exitcode)
{
	if (_PyPrepared_End(stored_names) < 0) exitcode = 120;
	if (_PyRuntime.signals.unhandled_keyboard_interrupt) exitcode = exit_sigint();
	return exitcode;
}
