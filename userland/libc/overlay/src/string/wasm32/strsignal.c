/* Names of signals in the words of GNU systems; see strerror.c. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "locale_impl.h"

static const char *const names[] = {
	[SIGHUP] = "Hangup",
	[SIGINT] = "Interrupt",
	[SIGQUIT] = "Quit",
	[SIGILL] = "Illegal instruction",
	[SIGTRAP] = "Trace/breakpoint trap",
	[SIGABRT] = "Aborted",
	[SIGBUS] = "Bus error",
	[SIGFPE] = "Floating point exception",
	[SIGKILL] = "Killed",
	[SIGUSR1] = "User defined signal 1",
	[SIGSEGV] = "Segmentation fault",
	[SIGUSR2] = "User defined signal 2",
	[SIGPIPE] = "Broken pipe",
	[SIGALRM] = "Alarm clock",
	[SIGTERM] = "Terminated",
	[SIGSTKFLT] = "Stack fault",
	[SIGCHLD] = "Child exited",
	[SIGCONT] = "Continued",
	[SIGSTOP] = "Stopped (signal)",
	[SIGTSTP] = "Stopped",
	[SIGTTIN] = "Stopped (tty input)",
	[SIGTTOU] = "Stopped (tty output)",
	[SIGURG] = "Urgent I/O condition",
	[SIGXCPU] = "CPU time limit exceeded",
	[SIGXFSZ] = "File size limit exceeded",
	[SIGVTALRM] = "Virtual timer expired",
	[SIGPROF] = "Profiling timer expired",
	[SIGWINCH] = "Window changed",
	[SIGPOLL] = "I/O possible",
	[SIGPWR] = "Power failure",
	[SIGSYS] = "Bad system call",
};

char *strsignal(int number)
{
	static char text[sizeof "Real-time signal -2147483648"];
	if (number > 0 && number < sizeof names / sizeof *names)
		return (char *)LCTRANS_CUR(names[number]);
	if (number >= SIGRTMIN && number <= SIGRTMAX)
		snprintf(text, sizeof text, "Real-time signal %d", number - SIGRTMIN);
	else
		snprintf(text, sizeof text, "Unknown signal %d", number);
	return text;
}
