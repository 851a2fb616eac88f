"""Stands for numpy in the builds of other packages, which ask it where its headers are."""

from pathlib import Path

__version__ = "2.5.4"


def get_include() -> str:
    """The directory that holds `numpy/arrayobject.h`."""
    return str(Path(__file__).resolve().parents[3] / "include")
