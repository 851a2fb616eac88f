/* Unused: stat is the statx system call. */
