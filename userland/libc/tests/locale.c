/* UTF-8 is the character set, also without any setting of the environment. */
#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <wchar.h>
#include <wctype.h>
#include "check.h"

int main(void)
{
	CHECK(setlocale(LC_ALL, "") && MB_CUR_MAX == 4);
	CHECK(!strcmp(nl_langinfo(CODESET), "UTF-8"));
	CHECK(!strcmp(setlocale(LC_TIME, 0), "C.UTF-8") && !strcmp(setlocale(LC_COLLATE, 0), "C"));
	CHECK(!strcmp(setlocale(LC_TIME, "C"), "C"));
	wchar_t c;
	CHECK(mbrtowc(&c, "\u20ac", 3, 0) == 3 && c == 0x20ac);
	CHECK(mbrtowc(&c, "\xff", 1, 0) == (size_t)-1 && errno == EILSEQ);
	mbstate_t state = { 0 };
	CHECK(mbrtowc(&c, "\xf0\x9f", 2, &state) == (size_t)-2);
	CHECK(mbrtowc(&c, "\x98\x80", 2, &state) == 2 && c == 0x1f600);
	char out[4];
	CHECK(wcrtomb(out, 0xe9, 0) == 2 && !memcmp(out, "\xc3\xa9", 2));
	CHECK(wcwidth(0x4e00) == 2 && towupper(0xe4) == 0xc4 && iswalpha(0x3b1));
	CHECK(towupper(0xdf) == 0xdf && towlower(0x1e9e) == 0xdf);

	iconv_t ascii = iconv_open("ASCII", "UTF-8");
	char *from = "\u00e9", *to = out;
	size_t from_left = 2, to_left = sizeof out;
	CHECK(iconv(ascii, &from, &from_left, &to, &to_left) == (size_t)-1 && errno == EILSEQ);
	CHECK(from_left == 2 && to == out);
	return 0;
}
