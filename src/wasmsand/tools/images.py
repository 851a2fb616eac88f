"""Images in answers to models.

Rules: an image is known by its first bytes, never by its name. Model APIs limit the size of an
image; a larger one is not sent.
"""

from __future__ import annotations

import base64
from typing import Any, Final

IMAGE_BYTES_MAX: Final = 3_500_000
"""Bytes of an image in an answer: in base64 this is less than the 5 MB that APIs accept."""
SUFFIXES: Final = {"image/png": "png", "image/jpeg": "jpg"}
_BEGINNINGS: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


def image_type(content: bytes) -> str | None:
    """The MIME type of an image that models can see; None if the content is no such image."""
    for beginning, mime in _BEGINNINGS.items():
        if content.startswith(beginning):
            return mime
    return None


def image_item(content: bytes, mime: str) -> dict[str, Any]:
    """An image as a part of an answer."""
    data = base64.b64encode(content).decode("ascii")
    return {"mime_type": mime, "size": len(content), "base64": data}
