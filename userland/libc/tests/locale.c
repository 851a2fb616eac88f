/* UTF-8 is the character set, also without any setting of the environment. */
#include <langinfo.h>
#include <locale.h>
#include <wchar.h>
#include <wctype.h>
#include "check.h"

int main(void)
{
	CHECK(setlocale(LC_ALL, "") && MB_CUR_MAX == 4);
	CHECK(!strcmp(nl_langinfo(CODESET), "UTF-8"));
	wchar_t c;
	CHECK(mbrtowc(&c, "\u20ac", 3, 0) == 3 && c == 0x20ac);
	CHECK(mbrtowc(&c, "\xff", 1, 0) == (size_t)-1 && errno == EILSEQ);
	mbstate_t state = { 0 };
	CHECK(mbrtowc(&c, "\xf0\x9f", 2, &state) == (size_t)-2);
	CHECK(mbrtowc(&c, "\x98\x80", 2, &state) == 2 && c == 0x1f600);
	char out[4];
	CHECK(wcrtomb(out, 0xe9, 0) == 2 && !memcmp(out, "\xc3\xa9", 2));
	CHECK(wcwidth(0x4e00) == 2 && towupper(0xe4) == 0xc4 && iswalpha(0x3b1));
	return 0;
}
