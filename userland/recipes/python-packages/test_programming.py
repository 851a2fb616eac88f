"""Packages for tests, checks and building, in use."""

from __future__ import annotations

from userland.recipes.guest_with_pip import Guest

_TESTS = """
import asyncio
import pytest

@pytest.fixture
def number():
    return 20

@pytest.mark.parametrize("x", [1, 2])
def test_sum(number, x):
    assert number + x > 20

def test_fails():
    assert [1, 2] == [1, 3]

@pytest.mark.asyncio
async def test_async():
    await asyncio.sleep(0)

def test_mock(mocker, tmp_path):
    mocker.patch("os.getcwd", return_value="/there")
    import os
    assert os.getcwd() == "/there" and tmp_path.is_dir()
"""


def test_pytest_with_plugins(guest: Guest) -> None:
    guest.run("pip install -q pytest pytest-asyncio pytest-mock")
    guest.sandbox.files.write("/home/user/test_it.py", _TESTS)
    printed = guest.run("pytest -q test_it.py", exit_code=1)
    assert "E       assert [1, 2] == [1, 3]" in printed
    assert "At index 1 diff: 2 != 3" in printed
    assert "1 failed, 4 passed" in printed
    assert "1 passed" in guest.run("python3 -m pytest -q test_it.py -k async")


def test_coverage(guest: Guest) -> None:
    guest.run("pip install -q coverage")
    guest.sandbox.files.write("/home/user/a.py", "x = 1\nif x > 1:\n    print(x)\n")
    printed = guest.run("coverage run a.py && coverage report -m")
    assert "a.py" in printed
    assert "67%   3" in printed


def test_black_pyflakes_and_pycodestyle(guest: Guest) -> None:
    guest.run("pip install -q black pyflakes pycodestyle")
    guest.sandbox.files.write("/home/user/a.py", "import os\nx = { 'a':1 }\n")
    guest.run("pyflakes a.py", exit_code=1)
    assert "E201" in guest.run("pycodestyle a.py", exit_code=1)
    guest.run("black -q a.py")
    assert guest.run("cat a.py") == 'import os\n\nx = {"a": 1}\n'


def test_click(guest: Guest) -> None:
    guest.run("pip install -q click")
    guest.sandbox.files.write(
        "/home/user/hello.py",
        "import click\n"
        "@click.command()\n@click.option('--count', default=1)\n@click.argument('name')\n"
        "def hello(count, name):\n    for _ in range(count):\n        click.echo(f'Hello {name}')\n"
        "hello()\n",
    )
    assert guest.run("python3 hello.py --count 2 you") == "Hello you\nHello you\n"
    assert "--count INTEGER" in guest.run("python3 hello.py --help")
    guest.run("python3 hello.py", exit_code=2)
    assert "Missing argument 'NAME'" in guest.errors


def test_small_ones(guest: Guest) -> None:
    guest.run("pip install -q packaging filelock platformdirs tenacity typing-extensions pluggy")
    program = """
import platformdirs, tenacity
from filelock import FileLock, Timeout
from packaging.version import Version
from typing_extensions import TypedDict, deprecated
print(Version("1.10") > Version("1.9"), platformdirs.user_cache_dir("x"))
with FileLock("a.lock"):
    try:
        FileLock("a.lock", timeout=0.1, is_singleton=False).acquire()
    except Timeout:
        print("locked")
attempts = []
@tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none())
def unsteady():
    attempts.append(1)
    if len(attempts) < 3:
        raise ValueError
    return len(attempts)
print(unsteady())
"""
    assert guest.python(program).splitlines() == ["True /home/user/.cache/x", "locked", "3"]


def test_setuptools_builds_without_pip(guest: Guest) -> None:
    guest.run("pip install -q setuptools wheel")
    guest.sandbox.files.write(
        "/home/user/setup.py",
        "from setuptools import setup\nsetup(name='mine', version='1', py_modules=['mine'])\n",
    )
    guest.sandbox.files.write("/home/user/mine.py", "")
    guest.run("python3 setup.py -q bdist_wheel")
    assert guest.run("ls dist") == "mine-1-py3-none-any.whl\n"
    assert "mine.py" in guest.run("wheel unpack dist/*.whl && ls mine-1")
