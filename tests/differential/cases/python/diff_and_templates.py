"""difflib, pprint, reprlib, string formatting, tables."""

import difflib
import pprint
import reprlib
import sys

old, new = ["one", "two", "three", "four"], ["one", "2", "three", "four", "five"]
sys.stdout.writelines(difflib.unified_diff([x + "\n" for x in old], [x + "\n" for x in new], "old", "new"))
print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 3))
print("\n".join(difflib.ndiff(["abc"], ["abd"])))
data = {"users": [{"name": f"user{i}", "roles": ["admin", "editor"] * i, "id": i} for i in range(3)], "meta": {"a": None}}
pprint.pprint(data, width=60)
pprint.pprint(list(range(40)), compact=True, width=50)
print(reprlib.repr("x" * 100), reprlib.repr(list(range(100))))
rows = [("name", "qty", "price"), ("apple", 3, 1.25), ("watermelon", 10, 13.5)]
widths = [max(len(str(row[i])) for row in rows) for i in range(3)]
for row in rows:
    print(" | ".join(f"{cell!s:>{w}}" if i else f"{cell!s:<{w}}" for i, (cell, w) in enumerate(zip(row, widths))))
print("%-10s|%5d|%8.3f|%x|%%|%r" % ("old", 42, 3.14159, 255, "q"), "{0!r:>6} {name:^7} {0}".format("a", name="mid"))
print(f"{'':=^20}", f"{1e6:_.1f}", f"{True:>5}", f"{None!s:.2}", f"{3.0:n}", f"{b'x'!r}", f"{0x1F600:c}")
