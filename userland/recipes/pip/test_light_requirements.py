"""The light readers of versions and markers agree with `packaging`."""

from __future__ import annotations

from userland.recipes.guest_with_pip import Guest

_PROGRAM = """
from itertools import product
from pip._registry.requirements import Requirement, marker_holds
from pip._registry.versions import is_newer, satisfies
from pip._vendor.packaging.markers import Marker
from pip._vendor.packaging.requirements import Requirement as Full
from pip._vendor.packaging.specifiers import SpecifierSet
from pip._vendor.packaging.version import Version

versions = "0 1 1.0 1.2 1.2.0 1.2.3 1.10 2 2.0.1 10.0 1.2rc1 1.2.post1 1!0.5 2.0.dev3 1.2+a".split()
clauses = ["", *(sign + version for sign, version in product(
    ["==", "!=", "<", "<=", ">", ">="], ["0", "1", "1.2", "1.2.0", "2", "1.10", "1.2rc1"])),
    "~=1.2", "~=1.2.0", "~=1.2.3", "==1.*", "!=1.*", "==1.2.*", "===1.2", ">=1,<2", ">1.0,!=1.2,<3"]
checked = 0
for version, clause in product(versions, clauses):
    expected = SpecifierSet(clause).contains(version, prereleases=True)
    assert satisfies(version, clause) == expected, (version, clause, expected)
    checked += 1
for one, other in product(versions, versions):
    assert is_newer(one, other) == (Version(one) > Version(other)), (one, other)
    checked += 1
markers = '''python_version < "3.11"
python_version >= "3.9" and python_version < "4"
python_full_version > '3.14.0'
sys_platform == "win32" or os_name == "posix"
(sys_platform == 'linux' and extra == 'b') or extra == "A_b"
platform_system != "Windows"
platform_python_implementation == "CPython" and implementation_name == 'cpython'
"linux" in sys_platform
sys_platform not in "win32 darwin"
platform_machine == "wasm32"
python_version in "3.13 3.14"
"3.9" <= python_version
extra == "x" and (python_version > "3" or os_name == "nt")
platform_version != ""'''.splitlines()
for marker, extra in product(markers, ["", "b", "a-b", "x"]):
    expected = Marker(marker).evaluate({"extra": extra})
    assert marker_holds(marker, extra) == expected, (marker, extra, expected)
    checked += 1
for text in ["a", "A.b_c", "a[b,C]", "a >= 1 , < 2", "a(>=1)", "a[x] (==1.0) ; os_name == 'posix'"]:
    light, full = Requirement(text), Full(text)
    assert light.raw_name == full.name and light.extras == {one.lower() for one in full.extras}
    assert SpecifierSet(light.specifier) == full.specifier
    checked += 1
print(checked > 800)
"""


def test_the_light_readers_agree_with_packaging(guest: Guest) -> None:
    assert guest.python(_PROGRAM) == "True\n"
