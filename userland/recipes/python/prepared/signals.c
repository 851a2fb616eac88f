
/* Appended to Modules/signalmodule.c: signals of a start from the checkpoint. */
#include "pycore_prepared.h"

/* Of the signals from here on, which have no names, nobody inherits that they are ignored. */
enum { FIRST_NAMELESS_SIGNAL = 32 };

void _PyPrepared_ResetSignals(void)
{
	PyOS_setsig(SIGINT, SIG_DFL);
	PyOS_setsig(SIGPIPE, SIG_DFL);
	PyOS_setsig(SIGXFSZ, SIG_DFL);
}

int _PyPrepared_InstallSignals(void)
{
	signal_state_t *state = &signal_global_state;
	PyOS_setsig(SIGPIPE, SIG_IGN);
	PyOS_setsig(SIGXFSZ, SIG_IGN);
	/* Importing _signal before the checkpoint has set all of them to what they are in a fresh
	 * process, and SIGINT to Python's handler. */
	for (int signum = 1; signum < FIRST_NAMELESS_SIGNAL; signum++) {
		if (PyOS_getsig(signum) == SIG_IGN) {
			PyObject *old = get_handler(signum);
			set_handler(signum, Py_NewRef(state->ignore_handler));
			Py_XDECREF(old);
		} else if (signum == SIGINT) {
			PyOS_setsig(SIGINT, signal_handler);
		}
	}
	return 0;
}
