"""ctypes: data of C, functions of the libc and of Python that are linked into the program, and
callbacks. What is the same on every machine is compared with native Python in
tests/differential/cases/python/ctypes_data.py."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


def run(sandbox: Sandbox, code: str) -> str:
    """What a program prints that must go well."""
    result = sandbox.commands.run(["python3", "-c", "from ctypes import *\n" + code])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("strlen(b'hello')", "5"),
        ("toupper(ord('a'))", "65"),
        # Without a word about its types: the function's own are used.
        ("time(None) > 1_700_000_000", "True"),
        ("lseek(0, 0, 0)", "-1"),
        ("abs()", "0"),
        ("abs(-3, 1, 2)", "3"),
    ],
)
def test_a_function_of_the_libc(sandbox: Sandbox, call: str, result: str) -> None:
    for library in ("'libc.so.6'", "None"):
        assert run(sandbox, f"print(CDLL({library}).{call})") == f"{result}\n"


def test_further_arguments(sandbox: Sandbox) -> None:
    code = (
        "libc = CDLL(None)\n"
        "libc.printf(b'%d %s %c|', 5, b'text', 65)\n"
        "libc.printf(b'%.2f %d %lld %d|', c_double(3.14159), 9, c_longlong(1 << 40), 3)\n"
        "libc.printf.argtypes = [c_char_p]; libc.printf(b'%s %.1f\\n', b'x', c_double(2.5))\n"
        "libc.fflush(None)"
    )
    assert run(sandbox, code) == "5 text A|3.14 9 1099511627776 3|x 2.5\n"


def test_numbers_of_both_kinds(sandbox: Sandbox) -> None:
    code = (
        "libm = CDLL('libm.so.6')\n"
        "libm.pow.restype = c_double; libm.pow.argtypes = [c_double, c_double]\n"
        "libm.powf.restype = c_float; libm.powf.argtypes = [c_float, c_float]\n"
        "libm.ldexp.restype = c_double; libm.ldexp.argtypes = [c_double, c_int]\n"
        "print(libm.pow(2, 0.5), libm.powf(2, 2), libm.ldexp(1.5, 4))"
    )
    assert run(sandbox, code) == "1.4142135623730951 4.0 24.0\n"


def test_errno_is_kept(sandbox: Sandbox) -> None:
    code = "libc = CDLL(None, use_errno=True); print(libc.open(b'/none', 0), get_errno())"
    assert run(sandbox, code) == "-1 2\n"


def test_callbacks(sandbox: Sandbox) -> None:
    code = (
        "compare = CFUNCTYPE(c_int, POINTER(c_int), POINTER(c_int))\n"
        "numbers = (c_int * 5)(5, 3, 9, 1, 7)\n"
        "CDLL(None).qsort(numbers, 5, sizeof(c_int), compare(lambda a, b: a[0] - b[0]))\n"
        "print(list(numbers))\n"
        "class Point(Structure): _fields_ = [('x', c_int), ('y', c_int), ('z', c_int)]\n"
        "class One(Structure): _fields_ = [('x', c_double)]\n"
        "print(CFUNCTYPE(c_double, c_double, c_int, c_longlong)(lambda a, b, c: a * b + c)(\n"
        "    1.5, 2, 1 << 33), CFUNCTYPE(c_short, c_short, c_ubyte)(lambda a, b: a - b)(-5, 200),\n"
        "    CFUNCTYPE(c_int, Point)(lambda p: p.x + p.y + p.z)(Point(1, 2, 3)),\n"
        "    CFUNCTYPE(c_double, One)(lambda p: p.x)(One(1.25)),\n"
        "    CFUNCTYPE(c_float, c_float)(lambda x: x / 2)(3))"
    )
    assert run(sandbox, code) == "[1, 3, 5, 7, 9]\n8589934595.0 -205 6 1.25 1.5\n"


def test_callbacks_that_are_gone_make_room(sandbox: Sandbox) -> None:
    code = (
        "callback = CFUNCTYPE(c_int, c_int)\n"
        "for i in range(1000): assert callback(lambda x: x + i)(1) == i + 1\n"
        "kept = []\n"
        "try:\n"
        "    while len(kept) < 1000: kept.append(callback(lambda x: x))\n"
        "except RuntimeError as error: print(len(kept), error)"
    )
    assert run(sandbox, code) == "64 ffi_prep_closure failed with 1\n"


def test_functions_and_variables_of_python(sandbox: Sandbox) -> None:
    code = (
        "import threading, time\n"
        "pythonapi.PyUnicode_FromFormat.restype = py_object\n"
        "print(pythonapi.PyUnicode_FromFormat(b'%d-%s', 5, b'x'))\n"
        "print(py_object.in_dll(pythonapi, 'PyExc_ValueError').value)\n"
        "def work():\n"
        "    try:\n"
        "        while True: time.sleep(0.01)\n"
        "    except KeyError: print('stopped')\n"
        "thread = threading.Thread(target=work); thread.start(); time.sleep(0.1)\n"
        "pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread.ident), py_object(KeyError))\n"
        "thread.join()"
    )
    assert run(sandbox, code) == "5-x\n<class 'ValueError'>\nstopped\n"


def test_libraries_that_are_part_of_the_program_are_found(sandbox: Sandbox) -> None:
    code = (
        "from ctypes.util import dllist, find_library\n"
        "print(find_library('c'), find_library('none'), 'libm.so.6' in dllist())\n"
        "print(CDLL(find_library('m')).abs(-2), c_int.in_dll(pythonapi, 'Py_OptimizeFlag').value)"
    )
    assert run(sandbox, code) == "libc.so.6 None True\n2 0\n"


def test_an_exception_of_python_is_raised(sandbox: Sandbox) -> None:
    failed = sandbox.commands.run(
        ["python3", "-c", "import ctypes; ctypes.pythonapi.PyLong_AsLong(ctypes.py_object('x'))"]
    )
    assert failed.stderr.endswith("TypeError: 'str' object cannot be interpreted as an integer\n")


def test_what_cannot_be_loaded_or_found_says_so(sandbox: Sandbox) -> None:
    code = (
        "for name in ('libnone.so', '/bin/ls'):\n"
        "    try: CDLL(name)\n"
        "    except OSError as error: print(error)\n"
        "try: CDLL(None).none\n"
        "except AttributeError as error: print(error)\n"
        "floats = CFUNCTYPE(c_int, *[c_float] * 9)\n"
        "for wrong in (lambda: floats(lambda *a: 0), lambda: floats(99)(*range(9))):\n"
        "    try: wrong()\n"
        "    except RuntimeError as error: print(error)"
    )
    assert run(sandbox, code) == (
        "libnone.so: cannot open shared object file: No such file or directory\n"
        "/bin/ls: shared libraries cannot be loaded: programs are linked statically\n"
        "python3: undefined symbol: none\n"
        "ffi_prep_closure failed with 1\n"
        "a function with arguments and a result of these types cannot be called\n"
    )
