
/* Appended to Python/pylifecycle.c: streams of a start from the checkpoint, and its end. */
#include "pycore_prepared.h"

PyStatus _PyPrepared_OpenStreams(void)
{
	return init_sys_streams(_PyThreadState_GET());
}

PyStatus _PyPrepared_AddMain(void)
{
	return add_main_module(_PyInterpreterState_GET());
}

/* Takes the modules that the program has imported out of sys.modules, and destroys what is
 * left of them: their globals may have finalisers, or be files with unwritten data. */
static void destroy_modules(PyThreadState *tstate, PyObject *stored_names)
{
	PyObject *modules = _PyImport_GetModules(tstate->interp);
	PyObject *items = PyMapping_Items(modules);
	PyObject *alive = PyList_New(0);
	if (!items || !alive) goto done;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
		PyObject *name = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
		PyObject *module = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1);
		if (PySet_Contains(stored_names, name) != 0 || !PyModule_Check(module)) continue;
		PyObject *reference = PyWeakref_NewRef(module, NULL);
		if (!reference || PyList_Append(alive, reference) < 0
			|| PyObject_SetItem(modules, name, Py_None) < 0) PyErr_Clear();
		Py_XDECREF(reference);
	}
	Py_CLEAR(items);
	_PyGC_CollectNoFail(tstate);
	for (Py_ssize_t i = PyList_GET_SIZE(alive) - 1; i >= 0; i--) {
		PyObject *module;
		if (PyWeakref_GetRef(PyList_GET_ITEM(alive, i), &module) <= 0) continue;
		_PyModule_Clear(module);
		Py_DECREF(module);
	}
	_PyGC_CollectNoFail(tstate);
done:
	Py_XDECREF(items);
	Py_XDECREF(alive);
	PyErr_Clear();
}

/* In the order of Py_FinalizeEx. The interpreter itself is not taken apart: the process ends,
 * and nobody could tell. */
int _PyPrepared_End(PyObject *stored_names)
{
	PyThreadState *tstate = _PyThreadState_GET();
	_PyRuntimeState *runtime = &_PyRuntime;
	int status = 0;

	tstate->interp->finalizing = 1;
	wait_for_thread_shutdown(tstate);
	_Py_FinishPendingCalls(tstate);
	_PyAtExit_Call(tstate->interp);

	_PyInterpreterState_SetFinalizing(tstate->interp, tstate);
	_PyRuntimeState_SetFinalizing(runtime, tstate);
	runtime->initialized = 0;
	runtime->core_initialized = 0;
	if (flush_std_files() < 0) status = -1;
	_PySignal_Fini();
	PyGC_Collect();
	finalize_modules_delete_special(tstate, 0);
	destroy_modules(tstate, stored_names);
	/* What cannot be written is complained about once. */
	if (!status && flush_std_files() < 0) status = -1;
	return status;
}
