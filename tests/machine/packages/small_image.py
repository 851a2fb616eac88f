"""A small image with a registry, for tests that need no programs."""

from __future__ import annotations

from wasmsand.kernel.vfs import Credentials, FrozenTree, ImageBuilder, Namespace, TreeFs
from wasmsand.machine.packages.links import ALTERNATIVE, FULL_PYTHON, SMALL_PYTHON
from wasmsand.machine.packages.reading import SITE_PACKAGES

USER = Credentials(1000, 1000)


def add_package(
    builder: ImageBuilder,
    name: str,
    version: str = "1.0",
    *,
    files: dict[str, str] | None = None,
    requires: tuple[str, ...] = (),
    entry_points: str = "",
    native: str = "",
) -> None:
    """Add a package with a module of its own name, or with `files`."""
    module = name.replace("-", "_")
    root = f"/usr/lib/python/{name}"
    for path, text in (files or {f"{module}/__init__.py": f"version = {version!r}\n"}).items():
        builder.add_file(f"{root}/{path}".encode(), text.encode())
    info = f"{root}/{module}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {name}!"]
    lines += [f"Requires-Dist: {needed}" for needed in requires]
    metadata = "\n".join([*lines, "", "Name: not this one", ""])
    builder.add_file(f"{info}/METADATA".encode(), metadata.encode())
    if entry_points:
        builder.add_file(f"{info}/entry_points.txt".encode(), entry_points.encode())
    if native:
        builder.add_file(f"{info}/native.txt".encode(), native.encode())


def small_image(*, has_full_python: bool = True) -> FrozenTree:
    """An image with packages that depend on each other, share a namespace, or are native."""
    builder = ImageBuilder()
    builder.add_dir(SITE_PACKAGES, 0o755, 1000, 1000)
    builder.add_dir(b"/usr/local/bin", 0o755, 1000, 1000)
    builder.add_dir(b"/etc/alternatives", 0o755, 1000, 1000)
    builder.add_symlink(ALTERNATIVE, SMALL_PYTHON, 1000, 1000)
    builder.add_file(SMALL_PYTHON, b"small", 0o755)
    if has_full_python:
        builder.add_file(FULL_PYTHON, b"full", 0o755)
    for module in ("json/__init__.py", "sqlite3/__init__.py", "re.py", "_private.py"):
        builder.add_file(f"/usr/lib/python3.14/{module}".encode(), b"")
    add_package(builder, "numpy", "2.5.4", native="required\n")
    add_package(
        builder,
        "pandas",
        "3.1.1",
        requires=(
            'numpy>=2.3.3; python_version >= "3.14"',
            'numpy<2; python_version < "3.14"',
            'colorama; sys_platform == "win32"',
            "python-dateutil>=2",
            'openpyxl; extra == "excel"',
        ),
        native="required",
    )
    add_package(
        builder,
        "python-dateutil",
        "4.0.0",
        files={"dateutil/__init__.py": ""},
        requires=("six>=1.5", "tzdata"),
    )
    add_package(
        builder, "six", "1.17", files={"six.py": "", "__pycache__/six.cpython-314.pyc": "x"}
    )
    add_package(
        builder,
        "openpyxl",
        files={"openpyxl/__init__.py": ""},
        entry_points="[console_scripts]\nsheet = openpyxl.tool:main\n\n[other]\nx = y:z\n",
    )
    add_package(builder, "zoo-one", files={"zoo/one/__init__.py": "", "zoo/shared/a.py": ""})
    add_package(builder, "zoo-two", files={"zoo/two.py": "", "zoo/shared/b.py": ""})
    add_package(builder, "broken", requires=("not-there>=1",))
    add_package(builder, "ring-a", requires=("ring-b",))
    add_package(builder, "ring-b", requires=("ring-a",))
    return builder.build()


def namespace_of(tree: FrozenTree) -> Namespace:
    return Namespace(TreeFs(tree))
