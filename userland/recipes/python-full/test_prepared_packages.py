"""Packages that the full interpreter has imported already, as programs see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from wasmsand import Sandbox
from wasmsand.machine import image_programs

FULL = "/usr/libexec/python3-full"
SITE = "/usr/lib/python3.14/site-packages"

if not any(program.name == "python-full" for program in image_programs()):
    pytest.skip("the stage of packages is not built: run `make packages`", allow_module_level=True)


with Sandbox() as _sandbox:
    SCIPY = _sandbox.files.exists("/usr/lib/python/scipy")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


Run = Callable[..., str]


@pytest.fixture
def run(sandbox: Sandbox) -> Run:
    """Run code in the full interpreter; returns what it printed."""

    def run(code: str, *, program: str = FULL, env: dict[str, str] | None = None) -> str:
        result = sandbox.commands.run([program, "-c", code], env=env)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    return run


def install(sandbox: Sandbox, *packages: str) -> None:
    for package in packages:
        result = sandbox.commands.run(f"ln -s /usr/lib/python/{package}/* {SITE}/")
        assert result.exit_code == 0, result.stderr


def test_a_package_that_is_not_installed_cannot_be_imported(sandbox: Sandbox, run: Run) -> None:
    for module in ("numpy", "numpy.linalg", "numpy._core._multiarray_umath"):
        failed = sandbox.commands.run([FULL, "-c", f"import {module}"])
        assert failed.stderr == (
            "Traceback (most recent call last):\n"
            '  File "<string>", line 1, in <module>\n'
            f"    import {module}\n"
            "ModuleNotFoundError: No module named 'numpy'\n"
            "It is available: pip install numpy\n"
        )
    assert run("import importlib.util; print(importlib.util.find_spec('numpy'))") == "None\n"


def test_other_modules_have_the_usual_error(sandbox: Sandbox) -> None:
    failed = sandbox.commands.run([FULL, "-c", "import numpyy"])
    assert failed.stderr.endswith("ModuleNotFoundError: No module named 'numpyy'\n")


def test_nothing_of_a_package_is_seen_before_its_import(sandbox: Sandbox, run: Run) -> None:
    show = """
import sys
library = {*sys.stdlib_module_names, *sys.builtin_module_names}
print([name for name in sys.modules if name.partition(".")[0] not in library])
print(sys.meta_path, sys.path)
"""
    expected = run(show, program="/usr/libexec/python3")
    assert run(show) == expected
    install(sandbox, "numpy", "pandas", "python-dateutil")
    assert run(show) == expected


def test_an_installed_package_is_handed_out(sandbox: Sandbox, run: Run) -> None:
    install(sandbox, "numpy")
    assert run(
        "import numpy as np; print(np.arange(6).reshape(2, 3) @ np.ones(3), np.__file__)"
    ) == (f"[ 3. 12.] {SITE}/numpy/__init__.py\n")
    module = "type(sys.modules['numpy'].__spec__.loader).__name__"
    assert run(f"import sys, numpy; print({module})") == "SourceFileLoader\n"
    # A prepared import executes nothing, so the compiled files of the package are not read.
    took = run("import time; a = time.process_time(); import numpy; print(time.process_time() - a)")
    assert float(took) < 0.2


@pytest.mark.xfail(SCIPY, strict=True, reason="L091 with scipy, numpy.strings comes with numpy")
def test_modules_and_filters_are_those_of_an_ordinary_import(sandbox: Sandbox, run: Run) -> None:
    install(sandbox, "numpy", "pandas", "python-dateutil")
    show = """
import sys, warnings
import {0}
print(sorted(n for n in sys.modules if n.partition(".")[0] in ("numpy", "pandas", "dateutil")))
print([str(f) for f in warnings.filters], sys.meta_path)
print(sorted(set(dir({0})) - set(dir(sys))))
"""
    for package in ("numpy", "pandas", "dateutil"):
        code = show.format(package)
        assert run(code) == run(code, program=f"{FULL}-plain")


def test_a_package_does_not_bring_what_other_packages_made_it_import(
    sandbox: Sandbox, run: Run
) -> None:
    install(sandbox, "numpy")
    show = "import sys, numpy; print({'unittest', 'asyncio', 'pydoc'} & set(sys.modules))"
    assert run(show) == "set()\n"


def test_packages_that_others_use_if_they_are_there_are_used(sandbox: Sandbox, run: Run) -> None:
    install(sandbox, "numpy", "pandas", "python-dateutil", "pytz")
    show = (
        "import pandas, pytz; print(pandas.Timestamp('2020-01-01', tz=pytz.timezone('US/Pacific')))"
    )
    assert run(show) == "2020-01-01 00:00:00-08:00\n"


def test_processes_know_the_main_module_and_the_directory(sandbox: Sandbox) -> None:
    sandbox.files.write("work/shape.py", "def area(side):\n    return side * side\n")
    program = """
from concurrent.futures import ProcessPoolExecutor
from shape import area

class Square:
    def __init__(self, side):
        self.area = area(side)

if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        print(pool.submit(Square, 3).result().area)
"""
    sandbox.files.write("work/main.py", program)
    result = sandbox.commands.run(f"{FULL} main.py", cwd="work")
    assert result.stdout == "9\n", result.stderr
    pool = "from concurrent.futures import ProcessPoolExecutor as Pool; import shape"
    code = f"{pool}; print(Pool(1).submit(shape.area, 5).result())"
    result = sandbox.commands.run([FULL, "-c", code], cwd="work")
    assert result.stdout == "25\n", result.stderr


def test_random_numbers_are_new_at_each_start(sandbox: Sandbox, run: Run) -> None:
    install(sandbox, "numpy")
    show = "import numpy as np; print(np.random.rand(3), np.random.default_rng().random(3))"
    assert run(show) != run(show)
    seeded = "import numpy as np; np.random.seed(5); print(np.random.rand(3))"
    assert run(seeded) == run(seeded) == run(seeded, program=f"{FULL}-plain")


def test_a_file_beside_a_program_hides_a_package(sandbox: Sandbox) -> None:
    install(sandbox, "numpy")
    sandbox.files.write("work/numpy.py", "value = 'mine'")
    sandbox.files.write("work/main.py", "import numpy; print(numpy.value)")
    assert sandbox.commands.run(f"{FULL} work/main.py").stdout == "mine\n"


def test_files_that_take_the_place_of_a_link_are_used(sandbox: Sandbox, run: Run) -> None:
    sandbox.files.write(f"{SITE}/numpy/__init__.py", "value = 'installed'")
    sandbox.files.write(f"{SITE}/numpy/linalg.py", "value = 'its module'")
    code = "import numpy, numpy.linalg; print(numpy.value, numpy.linalg.value)"
    assert run(code) == "installed its module\n"


def test_a_package_can_be_installed_while_a_program_runs(sandbox: Sandbox) -> None:
    code = f"""
import os
try:
    import numpy
except ModuleNotFoundError as error:
    print(error)
for name in os.listdir("/usr/lib/python/numpy"):
    os.symlink(f"/usr/lib/python/numpy/{{name}}", f"{SITE}/{{name}}")
import numpy
print(numpy.zeros(2))
"""
    result = sandbox.commands.run([FULL, "-c", code])
    assert (result.stdout, result.stderr) == ("No module named 'numpy'\n[0. 0.]\n", "")


def test_a_directory_of_the_registry_on_the_path_works(run: Run) -> None:
    env = {"PYTHONPATH": "/usr/lib/python/numpy"}
    assert run("import numpy.linalg as l; print(l.det([[2, 0], [0, 3]]))", env=env) == "6.0\n"


def test_variables_that_packages_read_are_followed(sandbox: Sandbox, run: Run) -> None:
    install(sandbox, "numpy")
    show = "import os, numpy; print(os.readlink('/proc/self/exe'))"
    assert run(show) == f"{FULL}\n"
    assert run(show, env={"NPY_DISABLE_CPU_FEATURES": ""}) == f"{FULL}-plain\n"


def test_threads_and_children_have_the_package(sandbox: Sandbox, run: Run) -> None:
    install(sandbox, "numpy")
    code = """
import subprocess, sys, threading
import numpy as np
out = []
threads = [threading.Thread(target=lambda n=n: out.append(np.arange(n).sum())) for n in range(5)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(map(int, out)))
child = "import numpy as np; print(np.ones(3).sum())"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
"""
    assert run(code) == "[0, 0, 1, 3, 6]\n3.0\n\n"


@pytest.mark.skipif(not SCIPY, reason="scipy is not built")
def test_modules_that_a_module_imports_by_a_call_come_with_it() -> None:
    program = "import scipy._external.array_api_compat.numpy as x; print(x.fft, x.linalg)"
    with Sandbox(packages=["scipy"]) as installed:
        result = installed.commands.run([FULL, "-c", program])
    assert result.exit_code == 0, result.stderr


def test_prepared_modules_know_what_modules_of_an_ordinary_import_know() -> None:
    """A package that another one uses if it is there must have been there at the checkpoint."""
    show = f"""
import importlib, sys
for line in open("{FULL}.d/packages.txt"):
    for name in line.split()[1:]:
        importlib.import_module(name)
packages = {{name.partition(".")[0] for name in sys.modules}} - sys.stdlib_module_names
for name, module in sorted(sys.modules.items()):
    if name.partition(".")[0] in packages:
        for key, value in sorted(vars(module).items()):
            if value is None or type(value) in (bool, int):
                print(name, key, value)
"""
    differ = {
        "numpy.f2py.crackfortran charset_normalizer",  # of use to f2py only, which needs Fortran
        "numpy.f2py.rules generationtime",
    }
    with Sandbox(packages="all", timeout_ms=None) as sandbox:
        runs = [sandbox.commands.run([name, "-c", show]) for name in (FULL, f"{FULL}-plain")]
    assert [run.exit_code for run in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    prepared, ordinary = (set(run.stdout.splitlines()) for run in runs)
    assert len(ordinary) > 1000
    in_both = {line.split()[0] for line in prepared} & {line.split()[0] for line in ordinary}
    found = {line.rpartition(" ")[0] for line in prepared ^ ordinary if line.split()[0] in in_both}
    assert found <= differ
