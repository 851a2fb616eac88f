"""A log parsed with named groups, substitution by a function, verbose patterns."""

import re
from collections import Counter

log = """\
2024-01-01 10:00:00 ERROR [db] connection lost (code=17)
2024-01-01 10:00:05 INFO  [web] GET /index.html 200
2024-01-01 10:00:07 ERROR [db] timeout (code=3)
broken line
2024-01-01 10:01:00 WARN  [web] slow: 1532ms
"""
pattern = re.compile(
    r"""(?P<date>\d{4}-\d\d-\d\d)\s(?P<time>[\d:]+)\s+
        (?P<level>[A-Z]+)\s+\[(?P<unit>\w+)\]\s(?P<text>.*)""",
    re.VERBOSE,
)
levels = Counter()
for line in log.splitlines():
    if match := pattern.fullmatch(line):
        levels[match["level"]] += 1
        print(match.groupdict()["unit"], "|", match["text"])
    else:
        print("skipped:", line)
print(levels.most_common())
print(re.sub(r"code=(\d+)", lambda m: f"code=0x{int(m[1]):02x}", log).count("0x11"))
print(re.findall(r"(?<!\d)\d{3}(?!\d)", log), re.split(r"\W+", "a, b;c  d"))
print(re.match(r"(?i:straße)", "STRAßE"), re.search(r"(\w)\1", "hello").span())
print(re.compile(r"^\s*#", re.M).sub("//", "# one\n  # two\n"))
