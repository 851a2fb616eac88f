"""Unicode through every door: files, arguments, variables, output, normal forms, widths."""

import os
import subprocess
import sys
import unicodedata

names = ["naïve", "日本語", "emoji 🎉", "Ωμέγα", "a\u0301"]
for name in names:
    with open(f"{name}.txt", "w") as file:
        file.write(name)
print(sorted(os.listdir(), key=lambda n: n.encode()))
print(subprocess.run(["ls"], capture_output=True).stdout.decode().splitlines() == sorted(os.listdir(), key=lambda n: n.encode()))
print(subprocess.check_output([sys.executable, "-c", "import sys, os; print(sys.argv[1], os.environ['V'], ascii(sys.argv[1]))", names[1]], env={**os.environ, "V": names[2]}, text=True))
for text in ("ﬀ", "Å", "é", "①", "ｶﾞ"):
    print(text, [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")], unicodedata.category(text[0]))
print("ß".upper(), "ǅ".title(), "Σ".lower(), "ΑΣ".lower(), "٣".isdigit(), int("٣"), "½".isnumeric(), "ªº".isalpha())
print(len("👨‍👩‍👧"), [hex(ord(c)) for c in "👨‍👩‍👧"], "\N{SNOWMAN}", "é" == "e\u0301", sorted(["é", "z", "e"]))
print(b"\xf0\x9f".decode("utf-8", "ignore"), "€".encode("cp1252"), "日本".encode("shift_jis"), "é".encode("ascii", "xmlcharrefreplace"))
open(b"\xff\xfe", "w").close()
print([n for n in os.listdir() if "\udcff" in n], os.fsencode("\udcff"))
os.remove(b"\xff\xfe")
sys.stdout.write("done ✓\n")
