// Examples to click: commands are typed into the terminal, code is run in the Python cell.

export interface Example {
  title: string;
  command?: string;
  code?: string;
  /** Whether it needs the compiled packages. */
  needsPackages?: true;
}

/** What examples import. */
export const PACKAGES = ["matplotlib", "numpy", "pandas"];

export const examples: Example[] = [
  { title: "Who am I?", command: "uname -a; id; bash --version | head -1; ls /usr/bin | wc -l" },
  { title: "A pipeline", command: "seq 1 100 | awk '{ s += $1 } END { print s }'" },
  {
    title: "A git repository",
    command:
      "git init -q demo; cd demo; echo hi > a; git add a; git -c user.name=me -c " +
      "user.email=me@example.org commit -qm first; git log --stat; cd ..",
  },
  {
    title: "Python and sqlite",
    command:
      "python3 -c \"import sqlite3; print(sqlite3.connect(':memory:').execute('select 6*7').fetchone())\"",
  },
  { title: "An editor", command: "vim -c 'normal iHello from vim. Leave with :q!'" },
  { title: "Job control", command: "sleep 100 & jobs; kill %1; wait; jobs" },
  { title: "What runs?", command: "ps aux; free -m; df -h /" },
  { title: "JSON with jq", command: "echo '{\"a\": [1, 2, 3]}' | jq '.a | add'" },
  {
    title: "A picture from Python",
    code: `import struct, zlib
from IPython.display import Image

def chunk(kind, data):
    end = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", end)

rows, size = bytearray(), 256
for y in range(size):
    rows.append(0)
    for x in range(size):
        rows += bytes((x, y, (x ^ y) & 255))
Image(data=b"\\x89PNG\\r\\n\\x1a\\n"
      + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
      + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b""))`,
  },
  {
    title: "A plot with matplotlib",
    needsPackages: true,
    code: `import matplotlib.pyplot as plt, numpy as np

x = np.linspace(0, 4 * np.pi, 400)
for shift in range(5):
    plt.plot(x, np.sin(x + shift / 2) * np.exp(-x / 8), label=f"{shift / 2}")
plt.legend(title="shift")
plt.show()`,
  },
  {
    title: "A table with pandas",
    needsPackages: true,
    code: `import pandas as pd

pd.DataFrame({"city": ["Oslo", "Lima", "Oslo", "Pune"], "rain": [3.1, 0.2, 4.4, 9.0]}) \\
    .groupby("city").agg(["mean", "count"])`,
  },
  {
    title: "A table from Python",
    code: `from IPython.display import HTML
HTML("<table><tr><th>n</th><th>n squared</th></tr>"
     + "".join(f"<tr><td>{n}</td><td>{n * n}</td></tr>" for n in range(1, 6)) + "</table>")`,
  },
];
