"""Public exceptions: their tree, their messages, and the one place that raises them."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

import wasmsand
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.sdk import errors
from wasmsand.sdk.errors import CommandError, FileError, NoSpaceError, command_errors, file_errors

pytestmark = pytest.mark.no_userland


def raised(error: KernelError, path: str = "/x") -> FileError:
    with pytest.raises(FileError) as caught, file_errors(path):
        raise error
    return caught.value


def test_every_exception_of_the_tree_is_public_and_drawn() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    classes = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.SandboxError)
    ]
    assert sorted([*drawn, "SandboxError"]) == sorted(classes)
    assert set(classes) <= set(wasmsand.__all__)


@pytest.mark.parametrize("number", list(Errno))
def test_every_errno_becomes_a_file_error_that_keeps_its_name(number: Errno) -> None:
    error = raised(KernelError(number))
    assert error.errno_name == number.name
    assert str(error).startswith(f"{number.name}: ")
    assert error.path == "/x"


def test_the_kernels_explanation_is_kept() -> None:
    error = raised(KernelError(Errno.ENOSPC, "file system full (5 bytes); raise fs_limit_bytes"))
    assert isinstance(error, NoSpaceError)
    assert str(error) == "ENOSPC: file system full (5 bytes); raise fs_limit_bytes (/x)"


def test_a_path_in_the_kernels_error_is_the_one_shown() -> None:
    error = raised(KernelError(Errno.ENOENT, "/x/y"))
    assert str(error) == "ENOENT: no such file or directory: /x/y"


def test_a_command_error_names_the_program() -> None:
    with pytest.raises(CommandError) as caught, command_errors("prog"):
        raise KernelError(Errno.ENOEXEC)
    assert str(caught.value) == "ENOEXEC: not a program this sandbox can run: prog"
    assert caught.value.errno_name == "ENOEXEC"


def test_an_exception_that_is_no_kernel_error_is_a_bug_and_passes_through() -> None:
    with pytest.raises(KeyError), file_errors("/x"):
        raise KeyError("bug")


@pytest.mark.parametrize(
    "error",
    [FileError("m: x", "EIO", "/x"), NoSpaceError("m", "ENOSPC", "/y"), CommandError("m", "E2BIG")],
)
def test_exceptions_survive_pickle_and_copy(error: FileError | CommandError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
