"""Barriers with which a process permanently gives up rights.

    confining       all barriers together, in order
    system_calls    prctl, landlock and seccomp, called with ctypes
    landlock        files, TCP and signals that the process may use
    seccomp         denied system calls
    resources       limits of memory and files
    environment     the variables that a confined process gets

Owns what the operating system denies to a process, in addition to what our code denies to a guest.
Rules: a barrier that the system does not support is left out, and the list of active barriers
shows it; failure of a supported barrier is an error. Barriers must be set up before other threads
start, because landlock and seccomp apply to the calling thread and the threads that it starts.
We use no library: none supports all rules of landlock, and those for seccomp need a C library;
each needs only a few system calls.
"""

from wasmsand.confinement.confining import Barriers, ParentGone, Policy, confine
from wasmsand.confinement.resources import limit_memory

__all__ = ["Barriers", "ParentGone", "Policy", "confine", "limit_memory"]
