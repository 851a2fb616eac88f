"""Words of a text: counters, sorting by several keys, Unicode normalisation, wrapping."""

import string
import textwrap
import unicodedata
from collections import Counter

text = """It was the best of times, it was the worst of times, it was the age of wisdom,
it was the age of foolishness… Café, CAFÉ, cafe\u0301; naïve façade; straße STRASSE."""
words = [w.strip(string.punctuation + "…").casefold() for w in text.split()]
words = [unicodedata.normalize("NFC", w) for w in words if w]
for word, count in sorted(Counter(words).items(), key=lambda p: (-p[1], p[0]))[:8]:
    print(f"{count:3} {word}")
print(textwrap.fill(text, 40, initial_indent="* ", subsequent_indent="  "))
print(textwrap.shorten(text, 30), textwrap.dedent("   a\n     b\n"))
print([unicodedata.name(c) for c in "é…ß"], len("e\u0301"), "ﬁ".upper(), "İ".lower().encode())
print("{:>10}|{:^10}|{:*<10}".format("right", "mid", "left"), "x".center(7, "="))
print("tést".encode("latin-1"), "日本".encode("utf-16-le").hex(), b"\xff\xfe".decode("utf-8", "replace"))
print(str.maketrans("abc", "xyz"), "aabbcc".translate(str.maketrans("abc", "xy ")))
print("a,b,,c".split(","), " x  y ".split(), "a\nb\r\nc".splitlines(), "k=v=w".partition("="))
