"""The user space of wasmsand: the libc port, one recipe per program, and the builder."""
