# Programs of the kind that are written to get something done: small Python scripts.
#| needs: python

#: csv: sums by group
printf 'name,team,points\nann,red,3\nbob,blue,5\n"Doe, Jane",red,4\n' > in.csv
cat > sums.py <<'EOF'
import csv
from collections import defaultdict
totals = defaultdict(int)
with open("in.csv", newline="") as f:
    for row in csv.DictReader(f):
        totals[row["team"]] += int(row["points"])
with open("out.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["team", "total"])
    w.writerows(sorted(totals.items()))
print(open("out.csv").read(), end="")
EOF
python3 sums.py

#: csv: dialects and quoting
python3 - <<'EOF'
import csv, io
text = 'a;b;c\n1;"x;y";3\n'
print(list(csv.reader(io.StringIO(text), delimiter=";")))
print(csv.Sniffer().sniff("a\tb\n1\t2\n3\t4\n").delimiter == "\t")
out = io.StringIO()
csv.writer(out, quoting=csv.QUOTE_NONNUMERIC).writerow(["a", 1, 'q"q', 2.5, None])
print(repr(out.getvalue()))
EOF

#: json: read, change, write
echo '{"b": [1, 2.5, null, true], "a": {"x": "é日\u0001"}, "big": 123456789012345678901234567890}' > d.json
python3 - <<'EOF'
import json
d = json.load(open("d.json"))
d["a"]["y"] = [float("inf"), -0.0, 1e100, 1/3]
print(json.dumps(d, sort_keys=True, indent=2))
print(json.dumps(d, ensure_ascii=False, separators=(",", ":")))
for bad in ("{", "[1,]", '{"a":1 "b"}', "nul", '"\x01"'):
    try:
        json.loads(bad)
    except json.JSONDecodeError as e:
        print(e)
EOF
python3 -m json.tool --compact d.json; echo '{"x":}' | python3 -m json.tool; echo $?

#: dates: arithmetic and formats
python3 - <<'EOF'
from datetime import *
d = date(2024, 2, 29)
print(d + timedelta(days=365), d.isocalendar(), d.strftime("%A %d %B %Y, week %V, day %j"))
dt = datetime(2024, 3, 10, 12, 30, 45, 123456, tzinfo=timezone(timedelta(hours=-5)))
print(dt.isoformat(), dt.astimezone(timezone.utc), dt.timestamp(), repr(dt))
print(datetime.strptime("10/Mar/2024:01:02:03 +0200", "%d/%b/%Y:%H:%M:%S %z"))
print(datetime.fromisoformat("2024-W10-3T10:00:00.5Z"), timedelta(seconds=1e6), timedelta(-1))
try:
    date(2023, 2, 29)
except ValueError as e:
    print(e)
EOF

#: dates: time zones
#| needs: tzdata
python3 - <<'EOF'
from zoneinfo import ZoneInfo
from datetime import datetime, timedelta
z = ZoneInfo("Europe/Berlin")
for month in (1, 7):
    t = datetime(2024, month, 1, 12, tzinfo=z)
    print(t, t.tzname(), t.astimezone(ZoneInfo("America/New_York")), t.utcoffset())
t = datetime(2024, 10, 27, 2, 30, tzinfo=z)
print(t.utcoffset(), t.replace(fold=1).utcoffset(), z.key)
EOF

#: calendar and time
python3 - <<'EOF'
import calendar, time
print(calendar.month(2024, 2), calendar.monthrange(2023, 2), calendar.timegm((1970, 1, 2, 0, 0, 0)))
print(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1e9)), time.gmtime(0).tm_yday)
print(time.mktime(time.strptime("2001-09-09", "%Y-%m-%d")) % 86400 >= 0, time.monotonic() > 0)
EOF

#: regular expressions
python3 - <<'EOF'
import re
log = '127.0.0.1 - - [10/Oct/2000:13:55:36] "GET /a?b=1 HTTP/1.0" 200 2326\n10.0.0.7 - x [11/Oct/2000:00:00:00] "POST /é HTTP/1.1" 404 -\n'
pattern = re.compile(r'(?P<ip>\S+) \S+ \S+ \[(?P<when>[^]]+)\] "(?P<verb>\w+) (?P<path>\S+)[^"]*" (?P<code>\d{3}) (?P<size>\d+|-)')
for m in pattern.finditer(log):
    print(m.groupdict(), m.span("path"))
print(re.sub(r"(?i)(\w)(\w*)", lambda m: m[1].upper() + m[2].lower(), "hELLO wORLD ßtraße"))
print(re.split(r"[,;]\s*", "a, b;c;  d"), re.findall(r"\b\w{3}\b", "the cat sat on mats"))
print(re.fullmatch(r"(a+)+b", "a" * 20 + "b") is not None, re.escape("a.b*c"))
try:
    re.compile("(")
except re.PatternError as e:
    print(e)
EOF

#: dataclasses and enums
python3 - <<'EOF'
from dataclasses import dataclass, field, asdict, replace
from enum import Enum, Flag, auto
class Colour(Enum):
    RED = auto(); GREEN = auto()
class Perm(Flag):
    R = 4; W = 2; X = 1
@dataclass(order=True, frozen=True)
class Item:
    price: float
    name: str = field(compare=False)
    tags: tuple[str, ...] = ()
items = [Item(2.5, "b"), Item(1.0, "a", ("x",)), Item(2.5, "c")]
print(sorted(items), max(items), asdict(items[1]), replace(items[0], price=9))
print(Colour.RED, Colour["GREEN"].value, list(Colour), Perm.R | Perm.X, Perm(7))
try:
    items[0].price = 3
except Exception as e:
    print(type(e).__name__, e)
EOF

#: argparse: a tool with subcommands
cat > tool.py <<'EOF'
import argparse, sys
p = argparse.ArgumentParser(prog="tool", description="A tool.")
p.add_argument("-v", "--verbose", action="count", default=0)
sub = p.add_subparsers(dest="command", required=True)
add = sub.add_parser("add", help="add numbers")
add.add_argument("numbers", nargs="+", type=float)
add.add_argument("--round", type=int, choices=range(5), metavar="N")
show = sub.add_parser("show")
show.add_argument("file", type=argparse.FileType("r"), nargs="?", default=sys.stdin)
a = p.parse_args()
print(a.command, a.verbose)
if a.command == "add":
    total = sum(a.numbers)
    print(round(total, a.round) if a.round is not None else total)
else:
    print(a.file.read().upper(), end="")
EOF
python3 tool.py -vv add 1 2.5 3.25 --round 1; echo text | python3 tool.py show; python3 tool.py add x; echo $?; python3 tool.py; echo $?; python3 tool.py add --help; python3 tool.py add 1 --round 9; echo $?

#: unittest
cat > test_maths.py <<'EOF'
import unittest
class Maths(unittest.TestCase):
    def setUp(self):
        self.n = 4
    def test_square(self):
        self.assertEqual(self.n ** 2, 16)
    def test_fails(self):
        self.assertEqual([1, 2, 3], [1, 2, 4])
    def test_error(self):
        1 / 0
    @unittest.skip("not now")
    def test_skipped(self):
        pass
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)
    @unittest.expectedFailure
    def test_expected(self):
        self.fail()
if __name__ == "__main__":
    unittest.main()
EOF
python3 -m unittest -v test_maths 2>&1 | sed -E 's/in [0-9.]+s/in Xs/; s|File ".*/|File "|'; python3 test_maths.py Maths.test_square 2>&1 | tail -1; rm -r __pycache__

#: doctest
cat > m.py <<'EOF'
def double(x):
    """
    >>> double(2)
    4
    >>> double("ab")
    'abab'
    >>> double(3)
    7
    """
    return x * 2
EOF
python3 -m doctest m.py | sed -E 's|File ".*/|File "|'; python3 -c 'import doctest, m; print(doctest.testmod(m, report=False).failed)' | tail -1; rm -r __pycache__

#: sqlite: a small database
python3 - <<'EOF'
import sqlite3
db = sqlite3.connect("shop.db")
db.row_factory = sqlite3.Row
db.executescript("create table item(id integer primary key, name text unique, price real); create table sale(item references item, n int);")
with db:
    db.executemany("insert into item(name, price) values(?, ?)", [("pen", 1.5), ("book", 12), ("ink", None)])
    db.executemany("insert into sale values(?, ?)", [(1, 3), (2, 1), (1, 2)])
for row in db.execute("select name, sum(n) as n, sum(n)*price as total from item left join sale on sale.item = item.id group by name order by name"):
    print(dict(row))
try:
    with db:
        db.execute("insert into item(name) values('new')")
        db.execute("insert into item(name) values('pen')")
except sqlite3.IntegrityError as e:
    print(e)
print(db.execute("select count(*) from item").fetchone()[0], db.total_changes)
db.create_function("rev", 1, lambda s: s[::-1])
print(db.execute("select rev(name), json_extract('{\"a\":[1,2]}', '$.a[1]') from item").fetchall()[0][:])
print("\n".join(db.iterdump())[:120])
EOF
python3 -c 'import sqlite3; print(sqlite3.connect("shop.db").execute("select name from item order by 1").fetchall())'

#: sqlite: full-text search, windows, dates
python3 - <<'EOF'
import sqlite3, datetime
db = sqlite3.connect(":memory:")
db.execute("create virtual table t using fts5(body)")
db.executemany("insert into t values(?)", [("the quick brown fox",), ("lazy dogs sleep",), ("quick dogs",)])
print(db.execute("select body from t where t match 'quick' order by rank").fetchall())
print(db.execute("select x, sum(x) over (order by x) from (select 1 x union select 2 union select 3)").fetchall())
print(db.execute("select date('2024-02-29', '+1 year'), sqrt(2), strftime('%s', 0, 'unixepoch')").fetchone())
EOF

#: asyncio: tasks, queues, time limits
python3 - <<'EOF'
import asyncio
async def work(n, q):
    await asyncio.sleep(0.05 * n)  # far apart: a busy machine may pause between two tasks
    await q.put(n * n)
    return n
async def main():
    q = asyncio.Queue()
    print(await asyncio.gather(*(work(i, q) for i in (3, 1, 2))))
    print([q.get_nowait() for _ in range(3)])
    try:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)
    except TimeoutError as e:
        print("late", repr(e))
    async with asyncio.TaskGroup() as g:
        t = g.create_task(work(1, q))
    print(t.result())
    try:
        async with asyncio.TaskGroup() as g:
            g.create_task(asyncio.sleep(9))
            g.create_task(fail())
    except* ValueError as e:
        print(e.exceptions)
    sem = asyncio.Semaphore(2); running = 0; most = 0
    async def limited():
        nonlocal running, most
        async with sem:
            running += 1; most = max(most, running)
            await asyncio.sleep(0); running -= 1
    await asyncio.gather(*(limited() for _ in range(9)))
    print(most)
async def fail():
    raise ValueError("bad")
asyncio.run(main())
EOF

#: asyncio: a server and its clients
python3 - <<'EOF'
import asyncio
async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper()); await writer.drain()
    writer.close()
async def client(port, words):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    got = []
    for word in words:
        w.write(word.encode() + b"\n")
        got.append((await r.readline()).decode().strip())
    w.close(); await w.wait_closed()
    return got
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(client(port, ["a", "b"]), client(port, ["x" * 5, "y"])))
    server.close()
asyncio.run(main())
EOF

#: asyncio: subprocesses
python3 - <<'EOF'
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("tr", "a-z", "A-Z", stdin=-1, stdout=-1)
    print(await p.communicate(b"hello\n"), p.returncode)
    many = await asyncio.gather(*(asyncio.create_subprocess_shell(f"sleep 0.0{i}; echo {i}; exit {i}", stdout=-1) for i in range(4)))
    for p in many:
        print((await p.communicate())[0], p.returncode)
    p = await asyncio.create_subprocess_exec("sleep", "60")
    p.terminate()
    print(await p.wait())
asyncio.run(main())
EOF

#: subprocess: pipelines
python3 - <<'EOF'
import subprocess as s
print(s.run(["sort", "-r"], input="b\na\nc\n", capture_output=True, text=True).stdout)
print(s.check_output("echo $((6*7)) | tee copy | wc -l", shell=True, text=True), open("copy").read())
a = s.Popen(["printf", r"3\n1\n2\n"], stdout=s.PIPE)
b = s.Popen(["sort"], stdin=a.stdout, stdout=s.PIPE, text=True)
a.stdout.close()
print(b.communicate()[0].split(), a.wait(), b.returncode)
r = s.run("echo out; echo err >&2; exit 7", shell=True, capture_output=True, text=True)
print(r)
try:
    s.run(["false"], check=True)
except s.CalledProcessError as e:
    print(e)
try:
    s.run(["sleep", "9"], timeout=0.05)
except s.TimeoutExpired as e:
    print(e.cmd, "timed out")
for bad in (["nosuchprogram"], ["/etc/passwd"], ["true"]):
    try:
        print(s.run(bad, cwd="/nowhere" if bad == ["true"] else None).returncode)
    except OSError as e:
        print(type(e).__name__, e)
print(s.run(["bash", "-c", "kill -TERM $$"]).returncode, s.getstatusoutput("echo x; exit 2"))
EOF

#: subprocess: environment, directory, descriptors, preexec
mkdir d
python3 - <<'EOF'
import os, subprocess as s
print(s.check_output(["bash", "-c", 'echo $X $PWD | sed "s|.*/||"'], env={"X": "1", "PATH": os.environ["PATH"]}, cwd="d", text=True))
r, w = os.pipe()
s.run(f"echo through >&{w}", shell=True, pass_fds=[w])
os.close(w)
print(os.read(r, 100))
print(s.run("umask; exit 4", shell=True, umask=0o27, preexec_fn=lambda: os.nice(3)).returncode)
try:
    s.run(["true"], preexec_fn=lambda: 1 / 0)
except s.SubprocessError as e:
    print(e)
print(s.run(["true"], preexec_fn=lambda: os._exit(9)).returncode)
print(os.system("exit 3") >> 8, os.popen("echo popen").read(), os.waitstatus_to_exitcode(os.system("kill -9 $$")))
pid = os.posix_spawnp("sh", ["sh", "-c", "exit 5"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
EOF

#: zip and tar files
mkdir -p tree/sub; echo one > tree/a.txt; seq 2000 > tree/sub/b.txt
python3 - <<'EOF'
import zipfile, tarfile, io, shutil
with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for p in ("tree/a.txt", "tree/sub/b.txt"):
        z.write(p)
    z.writestr("inline/é.txt", "ü")
with zipfile.ZipFile("t.zip") as z:
    print(z.testzip(), [(i.filename, i.file_size, i.CRC) for i in z.infolist()], z.read("inline/é.txt"))
for mode in ("gz", "bz2", "xz", "zst"):
    with tarfile.open(f"t.tar.{mode}", f"w:{mode}") as t:
        t.add("tree")
    with tarfile.open(f"t.tar.{mode}") as t:
        print(mode, sorted(t.getnames()), len(t.extractfile("tree/sub/b.txt").read()))
print(shutil.make_archive("a", "gztar", "tree").rsplit("/")[-1])
shutil.unpack_archive("a.tar.gz", "out")
EOF
cat out/a.txt; rm -f t.* a.*; python3 -m zipfile -c x.zip tree/a.txt && python3 -m zipfile -l x.zip | cut -c1-30; rm x.zip

#: compression
python3 - <<'EOF'
import zlib, gzip, bz2, lzma, hashlib
from compression import zstd
data = b"".join(b"line %d of text\n" % (i % 97) for i in range(20000))
for m in (zlib, gzip, bz2, lzma, zstd):
    packed = m.compress(data)
    print(m.__name__, len(packed) < len(data) // 20, m.decompress(packed) == data)
print(zlib.crc32(data), zlib.adler32(data), len(zlib.compress(data, 9)), hashlib.md5(zlib.compress(data, 6)).hexdigest())
try:
    zlib.decompress(b"garbage")
except zlib.error as e:
    print(e)
d = zlib.decompressobj(); print(len(d.decompress(zlib.compress(data), 100)), d.eof)
EOF

#: logging
cat > log.py <<'EOF'
import logging, logging.handlers, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)-8s %(name)s:%(lineno)d %(message)s", stream=sys.stdout)
log = logging.getLogger("app.db")
log.debug("hidden"); log.info("start %s", 1); log.warning("careful %(a)d", {"a": 2})
try:
    {}["k"]
except KeyError:
    log.exception("failed")
h = logging.handlers.RotatingFileHandler("app.log", maxBytes=60, backupCount=2)
h.setFormatter(logging.Formatter("%(message)s")); log.addHandler(h)
for i in range(6):
    log.error("message number %d here", i)
EOF
python3 log.py; head app.log*

#: typing, protocols, generics
python3 - <<'EOF'
from typing import *
from collections.abc import Callable, Iterator
type Pair[T] = tuple[T, T]
class Shape(Protocol):
    def area(self) -> float: ...
@runtime_checkable
class Named(Protocol):
    name: str
class Sq(NamedTuple):
    side: float
    name: str = "sq"
    def area(self): return self.side ** 2
class Movie(TypedDict, total=False):
    title: Required[str]; year: int
def first[T: (int, str)](xs: list[T]) -> T | None: return xs[0] if xs else None
def total(shapes: list[Shape]) -> float: return sum(s.area() for s in shapes)
print(total([Sq(2), Sq(1.5)]), first([3]), isinstance(Sq(1), Named), get_type_hints(first), Pair.__value__)
print(Movie.__required_keys__, Literal["a", 1], Optional[int], Callable[[int], str], Annotated[int, "x"])
class Box[T]:
    def __init__(self, v: T): self.v = v
print(Box[int].__args__, Box.__type_params__, Sq(1)._asdict())
EOF

#: pattern matching
python3 - <<'EOF'
def f(x):
    match x:
        case 0 | 1: return "small"
        case int(n) if n < 0: return f"negative {n}"
        case [a, *rest] if rest: return f"list {a} {rest}"
        case {"type": "point", "x": x, **more}: return f"point {x} {more}"
        case str() as s: return s.upper()
        case complex(real=r, imag=0): return r
        case _: return "other"
for v in (1, -5, [1, 2, 3], [1], {"type": "point", "x": 1, "y": 2}, "abc", 3 + 0j, None): print(f(v))
EOF

#: text: wrapping, templates, formats
python3 - <<'EOF'
import textwrap, string, pprint, locale
t = "The quick brown fox jumps over the lazy dog. " * 3
print(textwrap.fill(t, 40, initial_indent="* ", subsequent_indent="  "))
print(textwrap.dedent("""\
    a
      b
    c"""), textwrap.shorten(t, 30))
print(string.Template("$who owes ${n}€ $$").substitute(who="Ann", n=5), string.capwords("a bc"))
print(f"{1234567.891:,.2f} {255:#x} {5:>+6} {0.1234:.1%} {'x':*^7} {1e10:g} {3.0!r} {12:08b} {1/3:.17f} {1e22} {1e-7}")
print("{:>{w}}|{!r:<8}|{:%Y}".format("a", "b", __import__("datetime").date(2024, 1, 1), w=5))
pprint.pprint({"k%d" % i: list(range(i * 4)) for i in range(5)}, width=50, compact=True)
print("ß".upper(), "İ".lower(), "ǆ".title(), "straße".casefold(), "a\tb".expandtabs(4), "é".encode("latin-1"), "日本".encode("shift_jis"))
EOF

#: unicode
python3 - <<'EOF'
import unicodedata as u
for c in "é日🎉\u0301½": print(u.name(c), u.category(c), u.numeric(c, None), u.east_asian_width(c))
print(u.normalize("NFD", "éü").encode(), u.normalize("NFKC", "ﬁ①"), "e\u0301" == u.normalize("NFD", "é"), u.unidata_version)
for enc in ("utf-8", "utf-16", "utf-32-be", "cp1252", "gb18030", "euc-kr", "idna", "punycode"):
    try: print(enc, "aé€".encode(enc))
    except UnicodeError as e: print(enc, e)
print(b"\xff\xfea".decode("utf-8", "replace"), b"ab\xe9".decode("ascii", "backslashreplace"), "\ud800".encode("utf-8", "surrogatepass"))
EOF

#: files and paths
python3 - <<'EOF'
from pathlib import Path
import os, shutil, tempfile, glob, fnmatch, filecmp, stat
p = Path("a/b"); p.mkdir(parents=True); (p / "x.txt").write_text("één\ntwo\n", encoding="utf-8"); (p / "y.bin").write_bytes(bytes(range(256)))
print(sorted(map(str, Path(".").rglob("*"))), (p / "x.txt").read_text().splitlines(), p.joinpath("../c").resolve().name, (p / "x.tar.gz").suffixes)
print([len(l) for l in open(p / "x.txt", "rb")], (p / "y.bin").stat().st_size, oct((p / "x.txt").stat().st_mode), glob.glob("a/**/*.t?t", recursive=True))
os.symlink("b", "a/link"); print(os.readlink("a/link"), Path("a/link/x.txt").exists(), os.path.islink("a/link"), [(e.name, e.is_dir()) for e in sorted(os.scandir("a"), key=lambda e: e.name)])
shutil.copytree("a", "copy", symlinks=True); print(filecmp.dircmp("a", "copy").same_files, shutil.move("copy/b/x.txt", "moved.txt"))
with tempfile.NamedTemporaryFile("w+", dir=".", delete=True) as f:
    f.write("tmp"); f.flush(); print(os.path.getsize(f.name))
with tempfile.TemporaryDirectory(dir=".") as d: print(os.path.isdir(d))
for top, dirs, files in os.walk("a"): dirs.sort(); print(top, dirs, sorted(files))
for action in (lambda: open("nowhere"), lambda: os.mkdir("a"), lambda: os.rmdir("a"), lambda: os.remove("a"), lambda: open("a"), lambda: Path("a/b/x.txt").iterdir().__next__(), lambda: os.chmod("/", 0)):
    try: action()
    except OSError as e: print(type(e).__name__, e.errno, e)
with open("big", "wb") as f: f.seek(10**6); f.write(b"end")
print(os.path.getsize("big"), os.stat("big").st_blocks < 4000); os.truncate("big", 5); print(open("big", "rb").read())
os.utime("big", (1, 2)); print(os.stat("big").st_mtime, stat.filemode(os.stat("a").st_mode)); os.rename("big", "a/big"); os.link("a/big", "hard"); print(os.stat("hard").st_nlink)
EOF

#: collections and itertools
python3 - <<'EOF'
from collections import *
from itertools import *
from functools import *
import heapq, bisect, operator, statistics, random, fractions, decimal, math
print(Counter("mississippi").most_common(2), deque(range(5), 3), OrderedDict(a=1), ChainMap({"a": 1}, {"b": 2})["b"])
print(list(accumulate([1, 2, 3], operator.mul)), list(groupby("aabbb"))[0][0], list(combinations("abc", 2)), list(batched(range(5), 2)), list(pairwise("abc")), list(islice(count(3, 2), 3)), list(zip_longest("ab", "c", fillvalue="-")))
h = [5, 1, 4]; heapq.heapify(h); print(heapq.heappop(h), heapq.nlargest(2, h), bisect.bisect([1, 3, 5], 3), reduce(lambda a, b: a * b, range(1, 20)))
print(statistics.mean([1, 2, 4]), statistics.stdev([1, 2, 4]), statistics.quantiles(range(10)), statistics.linear_regression([1, 2, 3], [2, 4, 6.5]))
random.seed(42); print(random.random(), random.sample(range(100), 5), random.gauss(0, 1), random.choices("abc", k=5), random.getrandbits(80))
print(fractions.Fraction(3, 4) + fractions.Fraction("0.1"), decimal.Decimal(1) / 7, decimal.Decimal("1e-400") * 3, round(decimal.Decimal("2.675"), 2), decimal.Decimal(2).sqrt())
print(math.comb(50, 20), math.factorial(30), math.isqrt(10**20), math.gcd(84, 36), math.fsum([0.1] * 10), math.sin(1e6), math.gamma(5.5), math.dist((0, 0), (3, 4)), math.nextafter(1, 2), math.erf(0.5), math.log1p(1e-10))
@lru_cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(300), fib.cache_info(), pow(3, 10**18, 10**9 + 7), (2**1000 // 3**200) % 10**20, 7 // -2, -7 % 3, divmod(-7.5, 2), 0.1 + 0.2, float("nan") == float("nan"), 1e308 * 10, int("z", 36), int.from_bytes(b"\1\2", "big"), (10**30).to_bytes(13, "little").hex())
EOF

#: classes and metaprogramming
python3 - <<'EOF'
import functools, contextlib, abc, inspect, weakref, copy, operator
class Meta(type):
    def __new__(m, n, b, d): d["tag"] = n.lower(); return super().__new__(m, n, b, d)
class Base(abc.ABC):
    def __init_subclass__(cls, /, kind="?", **k): super().__init_subclass__(**k); cls.kind = kind
    @abc.abstractmethod
    def run(self): ...
class A(Base, kind="a"):
    __slots__ = ("v",)
    def __init__(self, v=0): self.v = v
    def run(self): return self
    @property
    def double(self): return self.v * 2
    @double.setter
    def double(self, x): self.v = x // 2
    def __add__(self, o): return A(self.v + o.v)
    def __repr__(self): return f"A({self.v})"
    def __eq__(self, o): return isinstance(o, A) and self.v == o.v
    def __hash__(self): return hash(self.v)
a = A(3); a.double = 10; print(a + A(1), {A(1): 2}[A(1)], A.kind, A.__mro__, copy.copy(a), sum([A(1), A(2)], A()))
try: Base()
except TypeError as e: print(e)
@contextlib.contextmanager
def managed(n):
    print("in", n)
    try: yield n
    finally: print("out", n)
with contextlib.ExitStack() as s:
    for i in range(2): s.enter_context(managed(i))
with contextlib.suppress(ZeroDivisionError), managed("x"): 1 / 0
def deco(n):
    def outer(f):
        @functools.wraps(f)
        def inner(*a, **k): return f(*a, **k) * n
        return inner
    return outer
@deco(3)
def g(a, /, b=1, *args, c: int = 2, **kw) -> str: "doc"; return f"{a}{b}{args}{c}{kw}"
print(g(1, 2, 3, c=4, d=5), inspect.signature(g), g.__doc__, g.__name__)
@functools.singledispatch
def show(x): return "any"
@show.register
def _(x: int): return "int"
print(show(1), show(""), Meta("T", (), {})().tag, operator.attrgetter("v")(a), weakref.ref(g)() is g)
print(inspect.getsource(contextlib.suppress)[:60], inspect.getdoc(str.split)[:40])
EOF

#: exceptions and tracebacks
cat > boom.py <<'EOF'
import sys
def inner(x):
    return 10 / x
def outer():
    try:
        inner(0)
    except ZeroDivisionError as e:
        e.add_note("a note")
        raise ValueError("wrapped") from e
try:
    outer()
except ValueError as e:
    import traceback
    traceback.print_exc(file=sys.stdout)
    print(repr(e), repr(e.__cause__), e.__cause__.__notes__)
try:
    raise ExceptionGroup("many", [ValueError(1), TypeError("t")])
except* TypeError as g:
    print(g.exceptions)
except* ValueError:
    pass
class Custom(Exception): pass
undefined_name.attribute
EOF
python3 boom.py; echo $?; python3 -c 'import sys; sys.exit("message")'; echo $?; python3 -c 'raise SystemExit(3)'; echo $?; python3 -c 'import os; os._exit(4)'; echo $?; python3 -c 'x = [1, 2
print(x'; echo $?; python3 -c 'print("é" + 1)'; python3 -c 'imprt os'; python3 -c 'import maths'; python3 -c '"abc".uper()'; python3 -c 'raise KeyboardInterrupt'; echo $?; python3 nosuch.py; echo $?; python3 -c 'def f(): f()
f()' 2>&1 | tail -1

#: command line options
printf 'import sys\nprint(sys.argv, __name__, sys.flags.optimize, __debug__)\nassert 0, "checked"\n' > s.py
python3 s.py a -b; python3 -O s.py x; python3 -m s y; echo 'print("from stdin", __name__)' | python3; echo 'print("dash")' | python3 - arg; python3 -c 'import sys; print(sys.argv)' 1 2; python3 -W error -c 'import warnings; warnings.warn("w")' 2>&1 | tail -1; python3 -W ignore -c 'import warnings; warnings.warn("w")'; python3 -X dev -c 'import sys; print(sys.flags.dev_mode)'; python3 -X utf8=0 -c 'import sys; print(sys.flags.utf8_mode)'; python3 -I -c 'import sys; print(sys.flags.isolated, "" in sys.path)'; python3 -E -s -S -c 'import sys; print(sys.flags)' | tr , '\n' | grep -c =1; python3 --version; python3 -VV | cut -c1-13; python3 --nosuch; echo $?; python3 -c; echo $?; python3 -m nosuch 2>&1 | sed 's/.*: //'; python3 -h | head -1 | cut -d' ' -f3-; python3 -x s.py 2>&1 | tail -1; python3 -q -i s.py </dev/null 2>&1 | tail -1; mkdir pkg; echo 'print("main of", __package__)' > pkg/__main__.py; python3 pkg; python3 -m pkg; python3 -B -c 'import s' 2>/dev/null; ls; rm -r __pycache__ pkg/__pycache__

#: variables of the environment
#| needs: gawk tzdata
mkdir lib; echo 'x = 1' > lib/mine.py; export PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=lib python3 -c 'import mine; print(mine.x, mine.__file__.split("/")[-2:])'; PYTHONPATH=lib python3 -E -c 'import mine' 2>&1 | tail -1; PYTHONHASHSEED=1 python3 -c 'print(hash("a") != 0, {"b", "a", "c"} == {"a", "b", "c"})'; PYTHONOPTIMIZE=1 python3 -c 'assert 0; print("no assertion")'; PYTHONSTARTUP=nowhere python3 -c 'print("s")'; PYTHONIOENCODING=latin-1 python3 -c 'print("é")' | od -An -tx1; PYTHONWARNINGS=error python3 -c 'import warnings; warnings.warn("x")' 2>&1 | tail -1; PYTHONINSPECT= python3 -c 'print(1)'; LC_ALL=C python3 -c 'import sys; print(sys.stdout.encoding, sys.getfilesystemencoding())'; PYTHONVERBOSE=1 python3 -c 1 2>&1 | grep -c '^import ' | awk '$1 > 5 { print "many" }'; TZ=Asia/Tokyo python3 -c 'import time; print(time.tzname, time.timezone)'; PYTHONUNBUFFERED=1 python3 -c 'import sys; print(sys.stdout.write_through)'; PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 LC_ALL=C.UTF-8 python3 -c 'import locale; print(locale.getencoding())'

#: pipes and signals
python3 -c 'for i in range(100000): print(i)' | head -n 2; echo "${PIPESTATUS[@]}"; seq 5 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'; printf 'a\nb' | python3 -c 'import sys; print([l for l in sys.stdin], sys.stdin.read())'; python3 -c 'print(input("? "))' < /dev/null 2>&1 | tail -1; echo x | python3 -c 'print(input("? "))'; python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGTERM)'; echo $?; python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGINT)' 2>&1 | tail -1; python3 - <<'EOF'
import signal, os, time
signal.signal(signal.SIGUSR1, lambda n, f: print("got", signal.Signals(n).name, flush=True))
os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGALRM, lambda n, f: 1 / 0)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while True: pass
except ZeroDivisionError: print("alarm in a loop")
signal.alarm(1)
try: time.sleep(10)
except ZeroDivisionError: print("alarm in sleep")
print(signal.sigpending(), signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]))
os.kill(os.getpid(), signal.SIGUSR1); print(signal.sigpending())
print(signal.sigwait([signal.SIGUSR1]), signal.strsignal(11))
EOF
(python3 -c 'import sys; sys.stdout.write("x" * 10); sys.stdout.flush(); import os; os.kill(os.getpid(), 9)'; echo $?) 2>/dev/null; python3 -c 'import sys; print("x"); sys.stdout.flush(); sys.stdout.close()' > /dev/full; echo $?

#: interrupts
python3 - <<'EOF'
import signal, subprocess, sys, time
programs = {
    "a loop": "while True: pass",
    "a sleep": "import time; time.sleep(60)",
    "handled": "try:\n while True: pass\nexcept KeyboardInterrupt: print('stopped', flush=True); raise SystemExit(7)",
    "a read": "import sys; sys.stdin.read()",
}
for name, code in programs.items():
    p = subprocess.Popen([sys.executable, "-c", "print('ready', flush=True)\n" + code], stdin=-1, stdout=-1, stderr=-1, text=True)
    p.stdout.readline(); time.sleep(0.3); p.send_signal(signal.SIGINT)
    out, err = p.communicate()
    print(name, p.returncode, out.strip(), err.strip().splitlines()[-1:])
p = subprocess.Popen([sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=-1); p.stdout.readline(); p.terminate(); print(p.wait())
EOF

#: http server and client on the loopback
cat > web.py <<'EOF'
import http.server, json, threading, urllib.request, urllib.error
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing": self.send_error(404); return
        body = json.dumps({"path": self.path, "agent": self.headers["X-Me"]}).encode()
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"])); self.send_response(201); self.end_headers(); self.wfile.write(data[::-1])
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
threading.Thread(target=s.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{s.server_port}"
print(json.load(urllib.request.urlopen(urllib.request.Request(base + "/a?b=c", headers={"X-Me": "me"}))))
r = urllib.request.urlopen(base + "/post", data=b"hello"); print(r.status, r.read())
try: urllib.request.urlopen(base + "/missing")
except urllib.error.HTTPError as e: print(e.code, e.reason)
s.shutdown()
EOF
python3 web.py

#: threads
python3 - <<'EOF'
import threading, queue, time
from concurrent.futures import ThreadPoolExecutor, as_completed
import asyncio
lock, total = threading.Lock(), 0
def add(n):
    global total
    for _ in range(n):
        with lock: total += 1
ts = [threading.Thread(target=add, args=(1000,), name=f"t{i}") for i in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]; print(total, threading.active_count(), ts[0].name)
q = queue.Queue(2)
def produce():
    for i in range(5): q.put(i)
    q.put(None)
threading.Thread(target=produce).start(); print(list(iter(q.get, None)))
with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(lambda x: x * x, range(6))), sorted(f.result() for f in as_completed([pool.submit(pow, 2, i) for i in range(4)])))
    f = pool.submit(lambda: 1 / 0)
    print(repr(f.exception()))
print(asyncio.run(asyncio.to_thread(lambda: threading.current_thread() is threading.main_thread())))
e = threading.Event(); threading.Timer(0.01, e.set).start(); print(e.wait(5), e.wait(0))
local = threading.local(); local.x = 1
def other(): print(hasattr(local, "x"))
t = threading.Thread(target=other); t.start(); t.join()
b = threading.Barrier(2); r = []
t = threading.Thread(target=lambda: r.append(b.wait())); t.start(); r.append(b.wait()); t.join(); print(sorted(r))
def bad(): raise RuntimeError("in thread")
threading.excepthook = lambda a: print("hook", a.exc_type.__name__, a.exc_value)
t = threading.Thread(target=bad); t.start(); t.join()
EOF

#: sockets
python3 - <<'EOF'
import socket, select, selectors, socketserver, os
a, b = socket.socketpair(); a.sendall(b"x" * 1000); print(len(b.recv(4096)), select.select([b], [a], [], 0)[1] == [a]); a.close(); print(b.recv(1))
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); p, addr = s.accept()
c.settimeout(0.05)
try: c.recv(1)
except TimeoutError as e: print(e)
p.sendall(b"line\n"); print(c.makefile().readline()); print(addr == c.getsockname(), s.family, c.getpeername()[0])
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.sendto(b"dgram", u.getsockname()); print(u.recvfrom(100)[0])
x = socket.socket(socket.AF_UNIX); x.bind("sock"); x.listen(); y = socket.socket(socket.AF_UNIX); y.connect("sock"); z, _ = x.accept(); y.send(b"unix"); print(z.recv(9)); os.unlink("sock")
sel = selectors.DefaultSelector(); sel.register(z, selectors.EVENT_READ, "z"); y.send(b"!"); print([(k.data, e) for k, e in sel.select(1)])
try: socket.create_connection(("127.0.0.1", 1), timeout=1)
except OSError as e: print(type(e).__name__, e)
print(socket.getaddrinfo("localhost", 80, socket.AF_INET, socket.SOCK_STREAM)[0][4], socket.inet_aton("1.2.3.4"), socket.inet_ntop(socket.AF_INET6, bytes(15) + b"\1"))
EOF

#: hashes and random numbers
python3 - <<'EOF'
import hashlib, hmac, base64, secrets, uuid, binascii, zlib
for n in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s"): print(n, hashlib.new(n, b"abc").hexdigest())
print(hashlib.shake_128(b"").hexdigest(8), hmac.new(b"k", b"m", "sha256").hexdigest(), hmac.compare_digest("a", "a"), hashlib.file_digest(open("/dev/null", "rb"), "md5").hexdigest())
print(base64.b64encode(bytes(range(20))), base64.b32encode(b"ab"), base64.urlsafe_b64encode(b"\xff\xfe"), base64.a85encode(b"text"), base64.b64decode("YWI="), binascii.hexlify(b"\0\xff", "-"))
print(len(secrets.token_hex(8)), uuid.uuid5(uuid.NAMESPACE_DNS, "a.b"), uuid.uuid4().version, len({secrets.token_bytes(4) for _ in range(99)}) > 90, uuid.UUID(int=5), binascii.crc32(b"x"))
EOF

#: struct, array, memoryview, ctypes-free bytes
python3 - <<'EOF'
import struct, array, io, mmap
print(struct.pack("<IhQ4s?d", 1, -2, 2**63, b"ab", True, 1.5).hex(), struct.unpack(">Hf", b"\1\2\x3f\x80\0\0"), struct.calcsize("!bhiq"), list(struct.iter_unpack("<H", bytes(4))))
a = array.array("d", [1, 2.5]); a.append(3); print(a, a.tobytes().hex(), array.array("H", b"\1\0\2\0").tolist())
m = memoryview(bytearray(b"abcdef")); m[1:3] = b"XY"; print(bytes(m), m[::2].tolist(), m.cast("H").shape, bytes(m[::-1]))
b = bytearray(b"hello"); b[1:2] = b"EE"; b += b"!"; print(b, b.find(b"l"), b.translate(None, b"l"), b"a,b".split(b","), b"%d%%" % 5, bytes.fromhex("0a ff"))
s = io.BytesIO(); w = io.TextIOWrapper(s, "utf-16"); w.write("é\n"); w.flush(); print(s.getvalue())
open("f", "wb").write(b"0123456789" * 10)
with open("f", "r+b") as f, mmap.mmap(f.fileno(), 0) as mm: print(mm[5:8], mm.find(b"90"), len(mm)); mm[0:2] = b"AB"; mm.flush()
print(open("f", "rb").read(4))
EOF

#: pickle, shelve, copy
python3 - <<'EOF'
import pickle, shelve, copy, marshal, collections
class P:
    def __init__(self, x): self.x = x
    def __reduce__(self): return (P, (self.x,))
o = {"a": [1, (2, {3})], "p": P([4]), "n": None, "f": 1.5, "b": b"x" * 300, "big": 1 << 100, "s": "é" * 300}; o["self"] = o["a"]
for proto in range(6):
    d = pickle.dumps(o, proto); r = pickle.loads(d); print(proto, len(d), r["self"] is r["a"], r["p"].x)
with shelve.open("sh") as s: s["k"] = {"v": [1, 2]}; s["l"] = 5
with shelve.open("sh") as s: print(sorted(s), s["k"])
d = copy.deepcopy(o); print(d["self"] is d["a"], marshal.loads(marshal.dumps({1: ["a"]})))
try: pickle.dumps(lambda: 0)
except Exception as e: print(type(e).__name__)
EOF
rm -f sh*

#: xml, html, urls, email
python3 - <<'EOF'
import xml.etree.ElementTree as E, html, urllib.parse as u, email, email.message, html.parser, configparser, io, tomllib
r = E.fromstring('<a x="1"><b>té</b><b n="2"/><!-- c --></a>'); print([b.text for b in r.iter("b")], r.find("b[@n='2']").attrib, E.tostring(r, encoding="unicode"))
E.indent(r); E.dump(r)
try: E.fromstring("<a><b></a>")
except E.ParseError as e: print(e)
from xml.dom import minidom; print(minidom.parseString("<q>1<w/></q>").toprettyxml(indent=" "))
print(html.escape("<a href='x'>"), html.unescape("&eacute;&#65;&lt;"), u.urlparse("http://u@h:80/p;x?q=1&q=2#f"), u.parse_qs("q=1&q=2&e="), u.quote("é /?"), u.urljoin("http://a/b/c", "../d"), u.urlencode({"a": "b c", "d": [1, 2]}, doseq=True))
class L(html.parser.HTMLParser):
    def handle_starttag(self, t, a): print(t, a)
L().feed("<p class=x><a href='/y'>z</a><br/>")
m = email.message.EmailMessage(); m["Subject"] = "Hé"; m["To"] = "a@b.c"; m.set_content("bödy\n"); m.add_attachment(b"data", maintype="application", subtype="x", filename="f")
m.set_boundary("BB"); print(m.as_string()); print(email.message_from_string("From: x\n\nbody").get_payload())
c = configparser.ConfigParser(); c.read_string("[s]\na = 1\nb = %(a)s2\n"); print(c["s"]["b"], c.getint("s", "a")); c.write(io.StringIO())
print(tomllib.loads('a = 1\n[b]\nc = [1.5, "x"]\nd = 1979-05-27T07:32:00Z'))
EOF

#: generators, comprehensions, iterators
python3 - <<'EOF'
def gen():
    try:
        while True:
            x = yield
            print("got", x)
    except GeneratorExit: print("closed")
    finally: print("finally")
g = gen(); next(g); g.send(1); g.close()
def tree(t):
    if isinstance(t, list):
        for c in t: yield from tree(c)
    else: yield t
print(list(tree([1, [2, [3, 4]], 5])), {x: y for x, y in zip("abc", range(3))}, {i % 3 for i in range(9)}, [(i, j) for i in range(3) for j in range(i)], sum(i * i for i in range(10)))
class It:
    def __init__(s, n): s.n = n
    def __iter__(s): return s
    def __next__(s):
        if s.n == 0: raise StopIteration
        s.n -= 1; return s.n
print(list(It(3)), [*It(2), *"ab"], dict(a=1, **{"b": 2}), (lambda *a, **k: (a, k))(*[1], **{"z": 2}))
a, *b, c = range(5); print(a, b, c); print(f"{(n := 5)=} {n * 2 = }", any(x > 3 for x in b), all([]), max("abc", key=lambda c: -ord(c)), sorted([(2, "b"), (1, "a")], reverse=True))
import string.templatelib
print(t"x{1 + 1}y".interpolations[0].value)
EOF

#: reading code: ast, tokenize, dis, inspect
python3 - <<'EOF'
import ast, tokenize, io, dis, inspect, symtable, keyword
t = ast.parse("def f(x, *, y=1):\n    return [i ** 2 for i in x if i > y]\n")
print(ast.dump(t, indent=1)); print(ast.unparse(t), ast.literal_eval("{'a': (1, 2.5, None)}"))
print([(tokenize.tok_name[k.type], k.string) for k in tokenize.generate_tokens(io.StringIO("x = 'é' # c\n").readline)])
class V(ast.NodeTransformer):
    def visit_Constant(self, n): return ast.Constant(n.value * 2)
print(eval(compile(ast.fix_missing_locations(V().visit(ast.parse("3 + 4", mode="eval"))), "", "eval")))
def f(a, b=2): return a + b
dis.dis(f); print(f.__code__.co_varnames, len(keyword.kwlist), eval("f(1)", {"f": f}), symtable.symtable("x = 1", "", "exec").get_symbols())
ns = {}; exec("def g(): return 7", ns); print(ns["g"]())
EOF

#: a word count, a prime sieve, a matrix, a maze
printf 'the cat the dog\nThe end\n' > words
python3 - <<'EOF'
from collections import Counter, deque
print(Counter(open("words").read().lower().split()).most_common())
n = 100; sieve = bytearray([1]) * (n + 1); sieve[:2] = b"\0\0"
for i in range(2, int(n ** 0.5) + 1):
    if sieve[i]: sieve[i * i::i] = bytes(len(range(i * i, n + 1, i)))
print([i for i, s in enumerate(sieve) if s])
m = [[1, 2], [3, 4]]; print([[sum(a * b for a, b in zip(r, c)) for c in zip(*m)] for r in m], list(zip(*m)))
maze = ["S.#", "..#", "#.E"]; q = deque([(0, 0, 0)]); seen = {(0, 0)}
while q:
    r, c, d = q.popleft()
    if maze[r][c] == "E": print("steps", d); break
    for y, x in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
        if 0 <= y < 3 and 0 <= x < 3 and maze[y][x] != "#" and (y, x) not in seen: seen.add((y, x)); q.append((y, x, d + 1))
def lev(a, b):
    p = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        c = [i]
        for j, y in enumerate(b, 1): c.append(min(p[j] + 1, c[-1] + 1, p[j - 1] + (x != y)))
        p = c
    return p[-1]
print(lev("kitten", "sitting"), sum(1 for _ in range(10**5)), sorted([5, 3, 9, 1]), "".join(reversed("abc")))
EOF

#: modules and packages
mkdir -p pkg/sub; echo 'from .a import value; __all__ = ["value"]' > pkg/__init__.py; echo 'value = 41 + 1' > pkg/a.py; echo 'from ..a import value as v; name = __name__' > pkg/sub/__init__.py; mkdir ns; echo 'y = 2' > ns/m.py; printf 'data' > pkg/res.txt
python3 - <<'EOF'
import pkg, pkg.sub, ns.m, importlib, importlib.resources, pkgutil, sys, runpy
print(pkg.value, pkg.sub.v, pkg.sub.name, ns.m.y, [m.name for m in pkgutil.iter_modules(["pkg"])], importlib.resources.files("pkg").joinpath("res.txt").read_text())
open("pkg/a.py", "w").write("value = 'changed!'\n"); importlib.invalidate_caches(); importlib.reload(pkg.a); print(pkg.a.value, runpy.run_path("ns/m.py")["y"])
import zipfile; z = zipfile.ZipFile("lib.zip", "w"); z.writestr("inzip.py", "w = 3"); z.close(); sys.path.insert(0, "lib.zip"); import inzip; print(inzip.w, inzip.__file__.endswith("lib.zip/inzip.py"))
try: from pkg import nothing
except ImportError as e: print(str(e).split(" (")[0])
print(sys.modules["pkg"].__path__[0].split("/")[-1], importlib.util.find_spec("nosuch"), sys.stdlib_module_names >= {"json", "os"})
EOF
ls pkg/__pycache__; rm -r lib.zip pkg ns

#: a script that is a program
printf '#!/usr/bin/env python3\nimport sys\nfor line in sys.stdin:\n    print(line.rstrip()[::-1])\n' > rev; chmod +x rev
printf 'abc\nxyz\n' | ./rev; PATH=.:$PATH; echo hello | rev | tr a-z A-Z; find /usr/lib/python3.14 -name 'argparse.py' 2>/dev/null | grep -c . | sed 's/.*/found or not/'

#: time measured, memory traced, profiles
python3 - <<'EOF'
import timeit, tracemalloc, cProfile, pstats, io, gc, sys, time, resource
print(timeit.timeit("1 + 1", number=1000) < 5); tracemalloc.start(); x = [bytes(1000) for _ in range(100)]; print(tracemalloc.get_traced_memory()[0] > 100000); tracemalloc.stop()
p = cProfile.Profile(); p.runcall(sorted, [3, 1, 2]); s = io.StringIO(); pstats.Stats(p, stream=s).print_stats(); print("sorted" in s.getvalue())
class N: pass
a = N(); a.me = a; del a; print(gc.collect() >= 1, sys.getrefcount(N) > 1, resource.getrusage(resource.RUSAGE_SELF).ru_utime >= 0)
t = time.perf_counter(); time.sleep(0.02); print(0.02 <= time.perf_counter() - t < 5, time.process_time() >= 0)
EOF

#: a terminal is not there
python3 -c 'import sys, os; print(sys.stdin.isatty(), os.isatty(1), os.environ.get("TERM") is not None)'; python3 -c 'import shutil; print(shutil.get_terminal_size())' ; python3 -c 'import getpass; print(getpass.getuser() != "")'; python3 -c 'import curses; curses.setupterm("xterm"); print(curses.tigetnum("colors"), curses.tparm(curses.tigetstr("cup"), 1, 2))'; python3 -c 'import readline; print(readline.get_current_history_length())'

#: processes of multiprocessing
cat > work.py <<'EOF'
import multiprocessing as mp, os
from concurrent.futures import ProcessPoolExecutor
def square(x): return x * x
def fill(queue, lock, n):
    for i in range(n):
        with lock: queue.put(i)
if __name__ == "__main__":
    mp.set_start_method("spawn")
    with mp.Pool(2) as pool: print(pool.map(square, range(8)), pool.apply(square, (9,)))
    queue, lock = mp.Queue(), mp.Lock()
    workers = [mp.Process(target=fill, args=(queue, lock, 3)) for _ in range(2)]
    for w in workers: w.start()
    print(sorted(queue.get() for _ in range(6)))
    for w in workers: w.join()
    print([w.exitcode for w in workers])
    with ProcessPoolExecutor(2) as pool: print(list(pool.map(square, range(4))))
    a, b = mp.Pipe(); a.send({"x": 1}); print(b.recv()); s = mp.Semaphore(1); print(s.acquire(), s.acquire(timeout=0.05))
EOF
python3 work.py; rm -rf __pycache__

#: a report from several files
mkdir logs; for i in 1 2 3; do printf "2024-01-0$i ERROR disk full\n2024-01-0$i INFO ok %d\n" $i > logs/$i.log; done
python3 - <<'EOF'
from pathlib import Path
import re, json, itertools
rows = [dict(zip(("day", "level", "text"), line.split(" ", 2)), file=p.name) for p in sorted(Path("logs").glob("*.log")) for line in p.read_text().splitlines()]
for level, group in itertools.groupby(sorted(rows, key=lambda r: r["level"]), lambda r: r["level"]):
    group = list(group); print(f"{level:<6} {len(group):>3}  {min(r['day'] for r in group)}")
Path("report.json").write_text(json.dumps(rows, indent=1))
Path("report.md").write_text("| day | text |\n|---|---|\n" + "".join(f"| {r['day']} | {r['text']} |\n" for r in rows if re.search("full", r["text"])))
print(Path("report.md").read_text())
EOF

#: a state machine, a parser, an interpreter
python3 - <<'EOF'
import re, operator
def tokens(text):
    for m in re.finditer(r"\s*(?:(\d+\.?\d*)|(.))", text): yield float(m[1]) if m[1] else m[2]
def parse(text):
    items = list(tokens(text)) + [None]; at = 0
    ops = {"+": (1, operator.add), "-": (1, operator.sub), "*": (2, operator.mul), "/": (2, operator.truediv), "^": (3, operator.pow)}
    def atom():
        nonlocal at
        item = items[at]; at += 1
        if item == "(":
            value = expression(0)
            if items[at] != ")": raise SyntaxError("expected )")
            at += 1; return value
        if item == "-": return -atom()
        if not isinstance(item, float): raise SyntaxError(f"unexpected {item!r}")
        return item
    def expression(level):
        nonlocal at
        left = atom()
        while items[at] in ops and ops[items[at]][0] > level:
            strength, act = ops[items[at]]; at += 1
            left = act(left, expression(strength - (act is operator.pow)))
        return left
    value = expression(0)
    if items[at] is not None: raise SyntaxError(f"left over {items[at]!r}")
    return value
for text in ("1 + 2 * 3", "(1 + 2) * 3", "2 ^ 3 ^ 2", "-4 / 8", "2 *", "1 2", "1 / 0"):
    try: print(text, "=", parse(text))
    except (SyntaxError, ZeroDivisionError) as e: print(text, "->", type(e).__name__, e)
EOF

#: text in other encodings, bytes that are none
printf 'caf\351\n' > latin; printf '\377\376a\000\n\000' > wide
python3 - <<'EOF'
print(open("latin", encoding="latin-1").read(), end="")
try: open("latin").read()
except UnicodeDecodeError as e: print(e)
print(open("latin", errors="surrogateescape").read().encode("utf-8", "surrogateescape"), open("wide", encoding="utf-16").read())
import os; open(b"n\xff", "w").close(); print(sorted(os.listdir(b".")), ascii(sorted(os.listdir("."))))
EOF
