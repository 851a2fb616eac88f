"""The names of the registry's packages, and what people type instead of them.

Owns the registry's place, normalisation (PEP 503), aliases, and the message for an unknown name.
Rules: an alias is a module's name that is not the name of another project.
"""

from __future__ import annotations

import os
import sys

REGISTRY = "/usr/lib/python"

_ALIASES = {
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "pil": "pillow",
    "pptx": "python-pptx",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
_NATIVE = (
    "contourpy", "kiwisolver", "lxml", "matplotlib", "numpy", "pandas", "pillow", "pyyaml",
    "regex", "scikit-learn", "scipy", "statsmodels",
)  # fmt: skip
"""Packages with native code that an image can have, if it was built with them."""


def normalised(name: str) -> str:
    """The name as it is compared, and as its directory is called."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


def registry_name(name: str) -> str:
    """The normalised name of the package that somebody means."""
    name = normalised(name)
    return _ALIASES.get(name, name)


def available() -> list[str]:
    """All packages of the registry."""
    try:
        return sorted(os.listdir(REGISTRY))
    except OSError:
        return []


def native_available() -> list[str]:
    """The packages of the registry that have native code."""
    found = []
    for name in available():
        for entry in os.listdir(f"{REGISTRY}/{name}"):
            if entry.endswith(".dist-info") and os.path.exists(
                f"{REGISTRY}/{name}/{entry}/native.txt"
            ):
                found.append(name)
    return found


def is_standard(name: str) -> bool:
    """Whether it is a module of the standard library."""
    return name in sys.stdlib_module_names and not name.startswith("_")


def not_found(name: str) -> str:
    """What to say about a package that the registry does not have."""
    if name in _NATIVE:
        return (
            f"Package not found: {name}. It has native code, and this image was built without "
            "the packages that have native code."
        )
    names = available()
    return f"Package not found: {name}. Available: {', '.join(_closest_first(name, names))}"


def _closest_first(name: str, names: list[str]) -> list[str]:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=5, cutoff=0.6)
    close += [other for other in names if name in other and other not in close]
    return close + [other for other in names if other not in close]
