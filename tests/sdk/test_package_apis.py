"""What programs use most of each package that models expect, after both ways of installing it.

Owns one small program per function. Rules: each runs in a process of its own and checks the values
of its results; all of them run with `packages=` and after `pip install`, with the names that users
write (`PIL`, `sklearn`); the sandbox has no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from wasmsand import Sandbox
from wasmsand.machine.packages.offered import registry

_LINALG: Final = {
    "linalg.norm": "assert np.linalg.norm([3.0, 4.0]) == 5",
    "linalg.det": "assert abs(np.linalg.det(A) - 5) < 1e-12",
    "linalg.inv": "assert np.allclose(np.linalg.inv(A) @ A, np.eye(2))",
    "linalg.pinv": "assert np.allclose(np.linalg.pinv(A) @ A, np.eye(2))",
    "linalg.solve": "assert np.allclose(np.linalg.solve(A, [3.0, 5.0]), [0.8, 1.4])",
    "linalg.lstsq": "assert np.allclose(np.linalg.lstsq(A, [3.0, 5.0])[0], [0.8, 1.4])",
    "linalg.eig": "assert np.allclose(sorted(np.linalg.eig(A)[0]), [(5-5**.5)/2, (5+5**.5)/2])",
    "linalg.eigh": "w, v = np.linalg.eigh(A); assert np.allclose(v * w @ v.T, A)",
    "linalg.svd": "u, s, v = np.linalg.svd(A); assert np.allclose(u * s @ v, A)",
    "linalg.qr": "q, r = np.linalg.qr(A); assert np.allclose(q @ r, A) and r[1, 0] == 0",
    "linalg.cholesky": "l = np.linalg.cholesky(A); assert np.allclose(l @ l.T, A)",
    "linalg.matrix_rank": "assert np.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]) == 1",
    "linalg.matrix_power": "assert np.linalg.matrix_power([[1, 1], [1, 0]], 10)[0, 0] == 89",
    "linalg.slogdet": "assert np.allclose(np.linalg.slogdet(-A), (1, np.log(5)))",
    "linalg.cond": "assert np.isclose(np.linalg.cond(A), (5 + 5**.5) / (5 - 5**.5))",
    "linalg.LinAlgError": (
        "try: np.linalg.inv(np.zeros((2, 2))); raise SystemExit('no error')\n"
        "except np.linalg.LinAlgError as error: assert str(error) == 'Singular matrix'"
    ),
}

_NUMPY: Final = {
    "array": (
        "a = np.array([[1, 2], [3, 4]]); assert a.tolist() == [[1, 2], [3, 4]] and a.ndim == 2"
    ),
    "zeros": "assert np.zeros((2, 3)).tolist() == [[0.0] * 3] * 2",
    "ones": "assert np.ones(3, dtype=np.int64).tolist() == [1, 1, 1]",
    "arange": "assert np.arange(2, 10, 3).tolist() == [2, 5, 8]",
    "linspace": "assert np.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]",
    "dot": (
        "assert np.dot([1.0, 2.0], [3.0, 4.0]) == 11 and np.dot(A, A).tolist() == [[5, 5], [5, 10]]"
    ),
    "reshape": "assert np.arange(6).reshape(2, -1).tolist() == [[0, 1, 2], [3, 4, 5]]",
    **_LINALG,
}

_PANDAS: Final = {
    "DataFrame": (
        "assert list(frame.columns) == ['name', 'size'] and frame.shape == (2, 2)\n"
        "assert frame[frame['size'] > 1].name.tolist() == ['b']\n"
        "assert frame.describe().loc['mean', 'size'] == 1.5"
    ),
    "Series": (
        "s = pd.Series([1, 2, 4], index=list('abc')); "
        "assert s['b':].sum() == 6 and s.idxmax() == 'c'"
    ),
    "read_csv": (
        "read = pd.read_csv(io.StringIO('d,x\\n2026-01-02,1.5\\n2026-01-03,\\n'), "
        "parse_dates=['d'])\n"
        "assert read.x.isna().tolist() == [False, True] and read.d[1].day_name() == 'Saturday'"
    ),
    "to_csv": (
        "frame.to_csv('t.csv', index=False)\n"
        "assert open('t.csv').read() == 'name,size\\na,1\\nb,2\\n'"
    ),
    "to_excel": (
        "frame.to_excel('t.xlsx', index=False, sheet_name='sizes')\n"
        "import openpyxl\n"
        "sheet = openpyxl.load_workbook('t.xlsx')['sizes']\n"
        "assert [[c.value for c in row] for row in sheet] == [['name', 'size'], ['a', 1], ['b', 2]]"
    ),
    "read_excel": (
        "frame.to_excel('u.xlsx', index=False)\n"
        "pd.testing.assert_frame_equal(pd.read_excel('u.xlsx'), frame)"
    ),
}

_PIL: Final = {
    "Image.open": "read = Image.open('p.png'); assert (read.format, read.size) == ('PNG', (4, 2))",
    "resize": "assert image.resize((8, 4), Image.NEAREST).getpixel((7, 3)) == (255, 0, 0)",
    "crop": "assert image.crop((1, 0, 3, 2)).size == (2, 2)",
    "rotate": (
        "turned = image.rotate(90, expand=True)\n"
        "assert turned.size == (2, 4) and turned.getpixel((1, 0)) == (255, 0, 0)"
    ),
    "save": (
        "for name in ('p.jpg', 'p.webp', 'p.gif', 'p.bmp', 'p.tiff'):\n"
        "    image.save(name); assert Image.open(name).size == (4, 2), name"
    ),
    "convert": (
        "assert image.convert('L').getpixel((3, 1)) == 76 and image.convert('RGBA').mode == 'RGBA'"
    ),
}

_MATPLOTLIB: Final = {
    "pyplot.plot": (
        "line, = plt.plot([1, 2], [3, 4], 'r--'); "
        "assert line.get_ydata().tolist() == [3, 4]\nshown()"
    ),
    "pyplot.scatter": "assert len(plt.scatter([1, 2, 3], [1, 4, 9]).get_offsets()) == 3\nshown()",
    "pyplot.bar": (
        "assert [bar.get_height() for bar in plt.bar(['a', 'b'], [3, 5])] == [3, 5]\nshown()"
    ),
    "pyplot.hist": "assert plt.hist([1, 1, 2, 5], bins=2)[0].tolist() == [3, 1]\nshown()",
    "pyplot.savefig PNG": (
        "plt.plot([1, 2]); plt.savefig('f.png'); assert open('f.png', 'rb').read(4) == b'\\x89PNG'"
    ),
    "pyplot.savefig SVG": (
        "plt.plot([1, 2]); plt.title('squares'); plt.savefig('f.svg')\n"
        "text = open('f.svg').read(); assert '<svg ' in text and '<!-- squares -->' in text"
    ),
}

_SKLEARN: Final = {
    "KMeans": (
        "from sklearn.cluster import KMeans\n"
        "groups = KMeans(2, random_state=0, n_init=10).fit_predict([[0], [1], [10], [11]])\n"
        "assert groups[0] == groups[1] != groups[2] == groups[3]"
    ),
    "PCA": (
        "from sklearn.decomposition import PCA\n"
        "found = PCA(1).fit([[0, 0], [1, 2], [2, 4]])\n"
        "assert abs(found.explained_variance_ratio_[0] - 1) < 1e-12"
    ),
    "LinearRegression": (
        "from sklearn.linear_model import LinearRegression\n"
        "line = LinearRegression().fit([[0], [1], [2]], [1, 3, 5])\n"
        "assert abs(line.coef_[0] - 2) < 1e-12 and abs(line.predict([[10]])[0] - 21) < 1e-12"
    ),
    "LogisticRegression": (
        "from sklearn.linear_model import LogisticRegression\n"
        "model = LogisticRegression().fit([[0], [1], [9], [10]], [0, 0, 1, 1])\n"
        "assert model.predict([[2], [8]]).tolist() == [0, 1]"
    ),
    "DecisionTree": (
        "from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor\n"
        "rows, answers = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]\n"
        "for tree in (DecisionTreeClassifier, DecisionTreeRegressor):\n"
        "    assert tree(random_state=0).fit(rows, answers).predict(rows).tolist() == answers"
    ),
    "train_test_split": (
        "from sklearn.model_selection import train_test_split\n"
        "a, b, c, d = train_test_split(list(range(10)), list(range(10)), test_size=0.3, "
        "random_state=1)\n"
        "assert (len(a), len(b)) == (7, 3) and a == c and b == d and sorted(a + b) == "
        "list(range(10))"
    ),
}

_SQLITE: Final = {
    "connect": "assert sqlite3.connect('other.db').execute('select 1').fetchone() == (1,)",
    "execute": "assert db.execute('select sum(n) from t where n > ?', (1,)).fetchone() == (5,)",
    "fetchall": (
        "assert db.execute('select n from t order by n desc').fetchall() == [(3,), (2,), (1,)]"
    ),
    "fetchone": (
        "c = db.execute('select n from t where n = 1'); "
        "assert [c.fetchone(), c.fetchone()] == [(1,), None]"
    ),
    "cursor": "c = db.cursor(); c.execute('insert into t values (4)'); assert c.rowcount == 1",
    "commit": (
        "db.execute('insert into t values (5)'); db.commit(); db.close()\n"
        "assert sqlite3.connect('t.db').execute('select max(n) from t').fetchone() == (5,)"
    ),
}

_REQUESTS: Final = {
    method: (
        f"answer = requests.{method}(url + '/x', {argument})\n"
        f"assert answer.status_code == 200 and answer.headers['X-Method'] == {method.upper()!r}\n"
        f"assert answer.json() == {{'path': {path!r}, 'body': {body!r}}}"
    )
    for method, argument, path, body in (
        ("get", "params={'q': 'a b'}", "/x?q=a+b", ""),
        ("post", "json={'a': 1}", "/x", '{"a":1}'),
        ("put", "data={'a': 1}", "/x", "a=1"),
        ("delete", "", "/x", ""),
    )
}

_SERVER: Final = """\
import json, threading, requests
from http.server import BaseHTTPRequestHandler, HTTPServer

class Echo(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        content = json.dumps({"path": self.path, "body": body.replace(" ", "")}).encode()
        self.send_response(200)
        self.send_header("X-Method", self.command)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    do_GET = do_POST = do_PUT = do_DELETE = answer
    def log_message(self, *_): pass

server = HTTPServer(("127.0.0.1", 0), Echo)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
"""

_PACKAGES: Final[dict[str, tuple[tuple[str, ...], str, dict[str, str]]]] = {
    "numpy": (("numpy",), "import numpy as np\nA = np.array([[2.0, 1.0], [1.0, 3.0]])", _NUMPY),
    "pandas": (
        ("pandas", "openpyxl"),
        "import io\nimport pandas as pd\nframe = pd.DataFrame({'name': ['a', 'b'], "
        "'size': [1, 2]})",
        _PANDAS,
    ),
    "PIL": (
        ("PIL",),
        "from PIL import Image\n"
        "image = Image.new('RGB', (4, 2)); image.putpixel((3, 1), (255, 0, 0))\n"
        "image.save('p.png')",
        _PIL,
    ),
    "matplotlib": (
        ("matplotlib",),
        "import io\nimport matplotlib.pyplot as plt\n"
        "def shown():\n"
        "    file = io.BytesIO(); plt.savefig(file); assert len(set(file.getvalue())) > 100",
        _MATPLOTLIB,
    ),
    "sklearn": (("sklearn",), "", _SKLEARN),
    "sqlite3": (
        ("sqlite3",),
        "import os, sqlite3\nif os.path.exists('t.db'): os.remove('t.db')\n"
        "db = sqlite3.connect('t.db'); db.execute('create table t (n)')\n"
        "db.executemany('insert into t values (?)', [(1,), (2,), (3,)])",
        _SQLITE,
    ),
    "requests": (("requests",), _SERVER, _REQUESTS),
}
"""By package: what is installed, what each program begins with, and the programs."""

_APIS: Final = [(name, api) for name, (_, _, apis) in _PACKAGES.items() for api in apis]
_NATIVE: Final = {"numpy", "pandas", "PIL", "matplotlib", "sklearn"}

Open = Callable[[str, str], Sandbox]


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[Open]:
    """Opens the sandbox of a package, once for all of its programs."""
    opened: dict[tuple[str, str], Sandbox] = {}

    def with_packages(installation: str, names: tuple[str, ...]) -> Sandbox:
        if installation == "packages=":
            return Sandbox(packages=list(names))
        sandbox = Sandbox()
        installed = sandbox.commands.run(["pip", "install", *names])
        assert installed.exit_code == 0, installed.stderr
        return sandbox

    def open_sandbox(installation: str, package: str) -> Sandbox:
        if (installation, package) not in opened:
            names = _PACKAGES[package][0]
            opened[installation, package] = with_packages(installation, names)
        return opened[installation, package]

    yield open_sandbox
    for sandbox in opened.values():
        sandbox.kill()


@pytest.mark.userland
@pytest.mark.parametrize("installation", ["packages=", "pip install"])
@pytest.mark.parametrize(("package", "api"), _APIS, ids=[".".join(found) for found in _APIS])
def test_a_function_works(sandboxes: Open, installation: str, package: str, api: str) -> None:
    if package in _NATIVE and "numpy" not in registry().names:
        pytest.skip("the stage of packages is not built: run `make packages`")
    sandbox = sandboxes(installation, package)
    _, beginning, apis = _PACKAGES[package]
    sandbox.files.write("/home/user/program.py", f"{beginning}\n{apis[api]}\nprint('checked')\n")
    result = sandbox.commands.run(["python3", "program.py"])
    assert (result.stdout, result.exit_code) == ("checked\n", 0), result.stderr
