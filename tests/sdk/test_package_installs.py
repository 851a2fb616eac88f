"""`sandbox.packages`: packages of an index on loopback, for guests without a network."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.server import Client, serving
from tests.sdk import blocking_facade
from tests.small_index import make_wheel, served, write_pages
from wasmsand import (
    IndexNotAllowedError,
    NativePackageError,
    NoSpaceError,
    PackageConflictError,
    PackageIndexError,
    PackageInfo,
    PackageNotFoundError,
    Sandbox,
    SandboxOptions,
)
from wasmsand.engine.choosing import host_cache
from wasmsand.machine.packages.offered import registry
from wasmsand.machine.packages.wheel_cache import load_wheel

SITE_PACKAGES = "/usr/lib/python3.14/site-packages"
SCRIPT = "[console_scripts]\nalpha-tool = alpha:main\n"


def fill(root: Path) -> None:
    files = root / "files"
    make_wheel(files / "alpha", "alpha", "1.0")
    make_wheel(
        files / "alpha",
        "alpha",
        "2.0",
        requires=(
            "beta>=1",
            'gamma; python_version >= "3.14"',
            'old-only; python_version < "3.14"',
            'windows-only; sys_platform == "win32"',
        ),
        entry_points=SCRIPT,
        files={
            "alpha/__init__.py": "def main():\n    print('alpha runs')\n",
            "alpha/deep/module.py": "value = 7\n",
            "alpha-2.0.data/scripts/alpha-script": "#!python\nprint('script runs')\n",
        },
    )
    make_wheel(files / "beta", "beta", "1.5")
    make_wheel(files / "gamma", "gamma", "3.0")
    make_wheel(files / "old-only", "old-only")
    make_wheel(files / "native", "native", tag="cp314-cp314-manylinux_2_17_x86_64")
    make_wheel(files / "needs-native", "needs-native", requires=("native",))
    make_wheel(files / "evil", "evil", files={"evil.py": "", "../../escape.py": "evil"})
    make_wheel(files / "zoo-one", "zoo-one", files={"zoo/one.py": "name = 'one'\n"})
    make_wheel(files / "zoo-two", "zoo-two", files={"zoo/two.py": "name = 'two'\n"})
    for package in registry().all():
        if not list(package.needs()):
            make_wheel(files / "uses-image", "uses-image", requires=(package.key,))
            break
    write_pages(root)


@pytest.fixture(scope="module")
def pip_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that make pip use the index on loopback, and keep wheels in a cache of their
    own, beside the compiled modules that the other tests use."""
    root = tmp_path_factory.mktemp("index")
    fill(root)
    cache = tmp_path_factory.mktemp("cache")
    modules = host_cache() / "modules"
    modules.mkdir(parents=True, exist_ok=True)
    (cache / "modules").symlink_to(modules)
    with served(root) as url:
        yield {
            "PIP_INDEX_URL": url,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_FIND_LINKS": "",
            "PIP_EXTRA_INDEX_URL": "",
            "WASMSAND_CACHE": str(cache),
        }


@pytest.fixture
def index(
    pip_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in pip_environment.items():
        monkeypatch.setenv(name, value)
    load_wheel.cache_clear()
    yield pip_environment
    load_wheel.cache_clear()


@pytest.fixture(params=["local", "async", "process", "http"])
def sandbox(request: pytest.FixtureRequest, index: dict[str, str]) -> Iterator[Sandbox]:
    """A sandbox that may install packages of the index, through each interface."""
    if request.param == "http":
        with (
            serving("--index-installs", environ=index) as server,
            Sandbox.connect(server.url) as sandbox,
        ):
            yield sandbox
        return
    if request.param == "async":
        facade = blocking_facade.make()
        yield facade
        facade.kill()
        return
    isolation = "process" if request.param == "process" else "none"
    with Sandbox(isolation=isolation) as made:  # type: ignore[arg-type]
        yield made


def names(found: list[PackageInfo]) -> list[str]:
    """Names and versions, without packages that every sandbox has."""
    return [f"{package.name} {package.version}" for package in found if package.name != "pip"]


def python(sandbox: Sandbox, code: str) -> str:
    result = sandbox.commands.run(["python3", "-c", code])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_package_comes_with_what_it_needs_in_the_sandbox(sandbox: Sandbox) -> None:
    lines: list[str] = []
    new = sandbox.packages.install("alpha", on_progress=lines.append)
    assert names(new) == ["alpha 2.0", "beta 1.5", "gamma 3.0"]
    assert names(new) == names(sandbox.packages.list())
    assert {package.location for package in new} == {
        "/usr/lib/python/alpha",
        "/usr/lib/python/beta",
        "/usr/lib/python/gamma",
    }
    code = "import alpha.deep.module as m, beta, gamma; print(m.value, m.__cached__)"
    printed = python(sandbox, code)
    assert printed.startswith("7 ")
    assert sandbox.files.exists(printed.split()[1]), "the module was compiled on the host"
    ran = sandbox.commands.run("alpha-tool; alpha-script")
    assert ran.stdout == "alpha runs\nscript runs\n"
    assert sandbox.packages.install("alpha") == []
    assert sandbox.usage().inodes < 20
    sandbox.packages.uninstall("alpha", "beta")
    assert names(sandbox.packages.list()) == ["gamma 3.0"]
    assert sandbox.commands.run("alpha-tool").exit_code == 127
    assert sandbox.commands.run("ls /usr/lib/python").stdout.split() == sorted(
        {*registry().names, "gamma"}
    )
    assert names(sandbox.packages.install("alpha<2")) == ["alpha 1.0"]
    assert names(sandbox.packages.list()) == ["alpha 1.0", "gamma 3.0"]


def test_failures_change_nothing_and_say_why(sandbox: Sandbox) -> None:
    with pytest.raises(NativePackageError, match="only such wheels can be installed") as native:
        sandbox.packages.install("beta", "needs-native")
    assert native.value.package == "native"
    with pytest.raises(PackageNotFoundError, match="'beta' is not installed"):
        sandbox.packages.uninstall("beta")
    with pytest.raises(ValueError, match="is not a package's name"):
        sandbox.packages.install("./local.whl")
    assert names(sandbox.packages.list()) == []


def test_bad_packages_of_the_index_are_not_installed(index: dict[str, str]) -> None:
    with Sandbox() as sandbox:
        with pytest.raises(PackageNotFoundError, match="'no-such-thing' in the image or in the"):
            sandbox.packages.install("no-such-thing")
        with pytest.raises(PackageIndexError, match="not a plain relative path"):
            sandbox.packages.install("beta", "evil")
        with pytest.raises(PackageIndexError, match="pip failed"):
            sandbox.packages.install("alpha==1.0", "alpha==2.0")
        assert names(sandbox.packages.list()) == []


def test_a_wheel_may_need_packages_of_the_image(index: dict[str, str]) -> None:
    needed = [package.key for package in registry().all() if not list(package.needs())]
    if not needed:
        pytest.skip("the image has no packages")
    with Sandbox() as sandbox:
        sandbox.packages.install("uses-image")
        found = {package.name: package.location for package in sandbox.packages.list()}
    assert {name: place for name, place in found.items() if name != "pip"} == {
        needed[0]: f"/usr/lib/python/{needed[0]}",
        "uses-image": "/usr/lib/python/uses-image",
    }


def test_another_version_replaces_the_installed_one(index: dict[str, str]) -> None:
    with Sandbox() as sandbox:
        sandbox.packages.install("alpha==1.0")
        assert python(sandbox, "import alpha; print(alpha.version)") == "1.0\n"
        sandbox.packages.install("alpha==2.0")
        assert names(sandbox.packages.list()) == ["alpha 2.0", "beta 1.5", "gamma 3.0"]
        assert python(sandbox, "import alpha.deep.module as m; print(m.value)") == "7\n"
        sandbox.packages.install("alpha==1.0")
        assert python(sandbox, "import alpha; print(alpha.version)") == "1.0\n"
        assert sandbox.commands.run("alpha-tool").exit_code == 127


def test_packages_with_a_common_namespace_are_both_importable(index: dict[str, str]) -> None:
    with Sandbox() as sandbox:
        sandbox.packages.install("zoo-one", "zoo-two")
        code = "import zoo.one, zoo.two; print(zoo.one.name, zoo.two.name)"
        assert python(sandbox, code) == "one two\n"
        sandbox.packages.uninstall("zoo-one")
        assert python(sandbox, "import zoo.two; print(zoo.two.name)") == "two\n"


def test_files_of_the_guest_are_kept(index: dict[str, str]) -> None:
    with Sandbox() as sandbox:
        sandbox.files.write(f"{SITE_PACKAGES}/beta.py", "mine = 1\n")
        with pytest.raises(PackageConflictError, match=r"site-packages/beta\.py already"):
            sandbox.packages.install("alpha")
        assert names(sandbox.packages.list()) == []
        assert sandbox.files.read_text(f"{SITE_PACKAGES}/beta.py") == "mine = 1\n"
        assert not sandbox.files.exists("/usr/lib/python/alpha")


def test_a_full_file_system_leaves_nothing_half_installed(index: dict[str, str]) -> None:
    with Sandbox(max_inodes=6) as sandbox:
        with pytest.raises(NoSpaceError):
            sandbox.packages.install("alpha")
        assert names(sandbox.packages.list()) == []
        assert not sandbox.files.exists("/usr/local/bin/alpha-tool")
        assert not [
            name
            for name in sandbox.commands.run("ls -A /usr/lib/python").stdout.split()
            if name not in registry().names
        ]


def test_a_server_allows_only_packages_of_the_image(index: dict[str, str]) -> None:
    with serving(environ=index) as server, Sandbox.connect(server.url) as sandbox:
        with pytest.raises(IndexNotAllowedError) as caught:
            sandbox.packages.install("beta")
        assert caught.value.package == "beta"
        available = [package.name for package in sandbox.packages.available()]
        assert available == list(registry().names)


def test_a_server_has_default_packages(index: dict[str, str]) -> None:
    pure = [package.key for package in registry().all() if not list(package.needs())]
    if not pure:
        pytest.skip("the image has no packages")
    with serving("--package", pure[0]) as server:
        with Sandbox.connect(server.url) as sandbox:  # the SDK sends all options
            assert names(sandbox.packages.list()) == []
        client = Client(server.url)
        listed = client.ask("GET", f"{client.create()}/packages").json["packages"]
        assert {package["name"] for package in listed} - {"pip"} == {pure[0]}


def test_an_index_that_does_not_answer_is_reported_in_the_words_of_pip(
    index: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/simple/"
    monkeypatch.setenv("PIP_INDEX_URL", address)
    monkeypatch.setenv("PIP_RETRIES", "1")
    with Sandbox() as sandbox, pytest.raises(PackageIndexError, match="No matching distribution"):
        sandbox.packages.install("beta")


def test_a_slow_index_ends_at_the_timeout(
    index: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple/"
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with Sandbox() as sandbox, pytest.raises(PackageIndexError, match="did not finish in time"):
            sandbox.packages.install("beta", timeout_ms=1500)


def test_an_exception_of_the_callback_ends_the_installation(index: dict[str, str]) -> None:
    class Stop(Exception):
        pass

    def stop(_line: str) -> None:
        raise Stop

    with Sandbox() as sandbox:
        with pytest.raises(Stop):
            sandbox.packages.install("beta", on_progress=stop)
        assert names(sandbox.packages.list()) == []


def test_a_snapshot_keeps_installed_packages(index: dict[str, str]) -> None:
    from wasmsand.sdk.local import LocalBackend

    with Sandbox() as sandbox:
        sandbox.packages.install("beta")
        backend = sandbox._attachment.backend
        assert isinstance(backend, LocalBackend)
        state = backend.state()
    copy = LocalBackend(SandboxOptions(), state)
    try:
        with Sandbox.from_backend(copy) as twin:
            assert names(twin.packages.list()) == ["beta 1.5"]
            assert python(twin, "import beta; print(beta.version)") == "1.5\n"
    finally:
        copy.close()
