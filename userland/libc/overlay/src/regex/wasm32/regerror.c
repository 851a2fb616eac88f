/* Messages about regular expressions in the words of GNU systems; see strerror.c. */
#include <regex.h>
#include <stdio.h>
#include "locale_impl.h"

static const char *const messages[] = {
	[REG_OK] = "Success",
	[REG_NOMATCH] = "No match",
	[REG_BADPAT] = "Invalid regular expression",
	[REG_ECOLLATE] = "Invalid collation character",
	[REG_ECTYPE] = "Invalid character class name",
	[REG_EESCAPE] = "Trailing backslash",
	[REG_ESUBREG] = "Invalid back reference",
	[REG_EBRACK] = "Unmatched [, [^, [:, [., or [=",
	[REG_EPAREN] = "Unmatched ( or \\(",
	[REG_EBRACE] = "Unmatched \\{",
	[REG_BADBR] = "Invalid content of \\{\\}",
	[REG_ERANGE] = "Invalid range end",
	[REG_ESPACE] = "Memory exhausted",
	[REG_BADRPT] = "Invalid preceding regular expression",
};

size_t regerror(int code, const regex_t *restrict compiled, char *restrict buffer, size_t size)
{
	const char *message = "Unknown error";
	if (code >= 0 && code < sizeof messages / sizeof *messages) message = messages[code];
	return 1 + snprintf(buffer, size, "%s", LCTRANS_CUR(message));
}
