/* What main.c, which starts an interpreter from its checkpoint, needs of CPython's insides. */
#ifndef PYCORE_PREPARED_H
#define PYCORE_PREPARED_H

/* config.c: does the command line hold nothing but options that change no preparation? */
int _PyPrepared_CanFollow(const PyWideStringList *arguments);
/* config.c: the command line in config->argv, and the variables, into the other fields. */
PyStatus _PyPrepared_ReadConfig(PyConfig *config);

/* signals.c: to a fresh process's actions, and from what a process inherited to Python's. */
void _PyPrepared_ResetSignals(void);
int _PyPrepared_InstallSignals(void);

/* lifecycle.c: sys.stdin, sys.stdout, sys.stderr for the descriptors as they are now. */
PyStatus _PyPrepared_OpenStreams(void);
/* lifecycle.c: a new module __main__. The collector must know it, and so it cannot be one of those
 * that were there at the checkpoint. */
PyStatus _PyPrepared_AddMain(void);
/* lifecycle.c: the part of Py_FinalizeEx that a program can see; -1 if output was lost. */
int _PyPrepared_End(PyObject *stored_names);

/* streams.c, buffers.c: whether nothing that was written to a stream waits to be flushed; 0 also for
 * a stream of another type. */
int _PyPrepared_IsFlushed(PyObject *stream);
int _PyPrepared_IsWritten(PyObject *buffer);

/* main.c: serve the requests of a session, if the program has begun one; the exit status. */
int _PyPrepared_ServeSession(void);

/* run.c: as Py_RunMain. `stored_names` are the modules that need no destruction. */
int _PyPrepared_RunMain(PyObject *stored_names);
/* run.c: its end. */
int _PyPrepared_EndMain(PyObject *stored_names, int exitcode);

#endif
