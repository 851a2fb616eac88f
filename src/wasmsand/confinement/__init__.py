"""Barriers that a process puts around itself: what it gives up cannot be had back.

    confining       all of them together, in order
    system_calls    prctl, landlock and seccomp, by ctypes
    landlock        files, TCP, signals: what the process may reach
    seccomp         system calls that it does not need
    resources       how much it may use

Owns what a process is denied by the operating system, beside whatever its own code denies to a
guest. Rules: a barrier that the system does not have is left out, and the list of those that are
in force says so; a barrier that the system has and that cannot be put up is an error. All of it
comes before the first other thread: landlock and seccomp hold for the calling thread and what it
starts. There is no maintained library that has all of landlock's rules, and none for seccomp
that needs no further C library; both are a few system calls.
"""

from wasmsand.confinement.confining import Barriers, ParentGone, Policy, confine
from wasmsand.confinement.resources import limit_memory

__all__ = ["Barriers", "ParentGone", "Policy", "confine", "limit_memory"]
