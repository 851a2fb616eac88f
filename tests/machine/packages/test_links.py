"""Packages are installed by links, completely or not at all."""

from __future__ import annotations

import pytest

from tests.machine.packages.small_image import USER, namespace_of, small_image
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ROOT, Namespace, TreeFs
from wasmsand.machine.host_access import find
from wasmsand.machine.packages.links import ALTERNATIVE, FULL_PYTHON, SMALL_PYTHON, Links
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.reading import SITE_PACKAGES, names_in, read_package, read_small
from wasmsand.machine.packages.registry import directory_of

pytestmark = pytest.mark.no_userland


@pytest.fixture
def namespace() -> Namespace:
    return namespace_of(small_image())


def install(namespace: Namespace, *names: str) -> Links:
    links = Links(namespace, USER)
    for name in names:
        package = read_package(namespace, directory_of(name))
        assert package is not None
        links.install(directory_of(name), package)
    links.choose_interpreter()
    return links


def uninstall(namespace: Namespace, *names: str) -> None:
    links = Links(namespace, USER)
    for name in names:
        package = read_package(namespace, directory_of(name))
        assert package is not None
        links.uninstall(directory_of(name), package)
    links.choose_interpreter()


def target(namespace: Namespace, path: bytes) -> bytes:
    node = find(namespace, namespace.root, path)
    assert node is not None
    return namespace.readlink(node)


def test_a_package_is_a_link_for_each_entry(namespace: Namespace) -> None:
    install(namespace, "six")
    assert names_in(namespace, SITE_PACKAGES) == [b"__pycache__", b"six-1.17.dist-info", b"six.py"]
    assert target(namespace, SITE_PACKAGES + b"/six.py") == b"/usr/lib/python/six/six.py"
    compiled = b"/__pycache__/six.cpython-314.pyc"
    assert target(namespace, SITE_PACKAGES + compiled) == b"/usr/lib/python/six" + compiled


def test_a_console_script_calls_its_function(namespace: Namespace) -> None:
    install(namespace, "openpyxl")
    assert names_in(namespace, b"/usr/local/bin") == [b"sheet"]
    assert read_small(namespace, b"/usr/local/bin/sheet") == (
        b"#!/usr/bin/python3\nimport sys\n\nfrom openpyxl.tool import main\n\n"
        b'if __name__ == "__main__":\n    sys.exit(main())\n'
    )
    node = find(namespace, namespace.root, b"/usr/local/bin/sheet")
    assert node is not None
    assert namespace.stat(node).mode & 0o777 == 0o755


def test_installing_twice_changes_nothing(namespace: Namespace) -> None:
    install(namespace, "six", "openpyxl")
    before = namespace.root.fs.freeze().next_ino  # type: ignore[attr-defined]
    install(namespace, "six", "openpyxl")
    assert namespace.root.fs.freeze().next_ino == before  # type: ignore[attr-defined]


def test_a_native_package_chooses_the_full_interpreter(namespace: Namespace) -> None:
    assert target(namespace, ALTERNATIVE) == SMALL_PYTHON
    install(namespace, "six")
    assert target(namespace, ALTERNATIVE) == SMALL_PYTHON
    install(namespace, "numpy")
    assert target(namespace, ALTERNATIVE) == FULL_PYTHON
    uninstall(namespace, "numpy")
    assert target(namespace, ALTERNATIVE) == SMALL_PYTHON


def test_without_a_full_interpreter_the_small_one_stays() -> None:
    namespace = namespace_of(small_image(has_full_python=False))
    install(namespace, "numpy")
    assert target(namespace, ALTERNATIVE) == SMALL_PYTHON


def test_packages_share_a_directory_without_init(namespace: Namespace) -> None:
    install(namespace, "zoo-one", "zoo-two")
    assert names_in(namespace, SITE_PACKAGES + b"/zoo") == [b"one", b"shared", b"two.py"]
    assert names_in(namespace, SITE_PACKAGES + b"/zoo/shared") == [b"a.py", b"b.py"]
    uninstall(namespace, "zoo-one")
    assert names_in(namespace, SITE_PACKAGES + b"/zoo") == [b"shared", b"two.py"]
    uninstall(namespace, "zoo-two")
    assert names_in(namespace, SITE_PACKAGES) == []


def test_uninstalling_leaves_nothing(namespace: Namespace) -> None:
    install(namespace, "openpyxl", "numpy")
    assert list(Links(namespace, USER).installed()) == ["numpy", "openpyxl"]
    uninstall(namespace, "openpyxl", "numpy")
    assert names_in(namespace, SITE_PACKAGES) == []
    assert names_in(namespace, b"/usr/local/bin") == []
    assert Links(namespace, USER).installed() == {}


def test_files_of_the_guest_are_never_replaced(namespace: Namespace) -> None:
    node = namespace.open_node(USER, namespace.root, SITE_PACKAGES + b"/six.py", 0o301, 0o644)
    namespace.write(USER, node, 0, b"mine")
    with pytest.raises(PackageProblem, match=r"site-packages/six\.py already") as caught:
        install(namespace, "six")
    assert caught.value.kind is PackageFault.CONFLICT
    assert read_small(namespace, SITE_PACKAGES + b"/six.py") == b"mine"


def test_a_change_is_undone_as_a_whole(namespace: Namespace) -> None:
    install(namespace, "zoo-one", "openpyxl")
    before = names_in(namespace, SITE_PACKAGES)
    links = install(namespace, "zoo-two", "numpy")
    links.undo()
    assert names_in(namespace, SITE_PACKAGES) == before
    assert target(namespace, SITE_PACKAGES + b"/zoo") == b"/usr/lib/python/zoo-one/zoo"
    assert target(namespace, ALTERNATIVE) == SMALL_PYTHON


def test_a_full_file_system_is_an_error_that_can_be_undone() -> None:
    tree = TreeFs(small_image(), Limits(max_inodes=2))
    namespace = Namespace(tree)
    links = Links(namespace, USER)
    package = read_package(namespace, directory_of("six"))
    assert package is not None
    with pytest.raises(KernelError) as caught:
        links.install(directory_of("six"), package)
    assert caught.value.errno is Errno.ENOSPC
    links.undo()
    assert names_in(namespace, SITE_PACKAGES) == []
    assert tree.space.used_inodes == 0


def test_a_link_of_the_guest_does_not_lead_the_host_elsewhere(namespace: Namespace) -> None:
    """The guest replaces a shared directory by a link to a directory that it may not write."""
    install(namespace, "zoo-one", "zoo-two")
    uninstall(namespace, "zoo-one", "zoo-two")
    namespace.mkdir(ROOT, namespace.root, b"/secret", 0o755)
    namespace.symlink(USER, b"/secret", namespace.root, SITE_PACKAGES + b"/zoo")
    with pytest.raises(PackageProblem):
        install(namespace, "zoo-one")
    namespace.symlink(USER, b"/secret", namespace.root, SITE_PACKAGES + b"/__pycache__")
    with pytest.raises(KernelError) as caught:
        install(namespace, "six")
    assert caught.value.errno is Errno.EACCES
    assert names_in(namespace, b"/secret") == []
