#ifndef NETCAT_READPASSPHRASE_H
#define NETCAT_READPASSPHRASE_H

#include <stddef.h>

#define RPP_REQUIRE_TTY 0x02

char *readpassphrase(const char *prompt, char *buffer, size_t size, int flags);

#endif
