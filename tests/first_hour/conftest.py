"""The wheels and the installation that the tests share."""

from __future__ import annotations

from tests.wheel.installation import installed, wheels

__all__ = ["installed", "wheels"]
