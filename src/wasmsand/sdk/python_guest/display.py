"""`display()` and the classes of `IPython.display`.

Rules: names, arguments and attributes are IPython's, as far as they exist here; a value that is
displayed becomes one message with all its forms, each at most `FORM_MAX` bytes.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from wasmsand.sdk.python_driver import driver

__name__ = "IPython.core.display"  # the module of the classes
FORM_MAX, MESSAGE_MAX, JSON_MAX, METADATA_MAX, FORMS_MAX = 5 << 20, 5 << 20, 1 << 20, 8192, 30
TEXT, JSON_FORM = "text/plain", "application/json"
__all__ = [
    "HTML", "JSON", "SVG", "DisplayHandle", "DisplayObject", "Image", "Javascript", "Latex",
    "Markdown", "Math", "Pretty", "TextDisplayObject", "clear_output", "display", "display_html",
    "display_jpeg", "display_json", "display_latex", "display_markdown", "display_png",
    "display_pretty", "display_svg", "publish_display_data", "update_display",
]  # fmt: skip


def as_bytes(mime: str, form: object) -> bytes | None:
    """A form as the bytes of a message; None if it is of a type that no form has."""
    if mime == JSON_FORM or mime.endswith("+json"):
        try:
            data = json.dumps(form, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            data = json.dumps(driver.part("forms").plain(form), ensure_ascii=False)
        encoded = data.encode("utf-8", "surrogatepass")
        return None if len(encoded) > JSON_MAX else encoded
    if isinstance(form, str):
        if mime == "application/pdf" or (mime.startswith("image/") and mime != "image/svg+xml"):
            try:
                return base64.b64decode(form, validate=True)
            except ValueError:
                return None
        return form.encode("utf-8", "surrogatepass")
    if isinstance(form, bytes | bytearray | memoryview):
        return bytes(form)
    if isinstance(form, list) and all(isinstance(line, str) for line in form):
        return "".join(form).encode("utf-8", "surrogatepass")
    return None


def publish(
    data: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    *,
    is_main: bool = False,
    display_id: str | None = None,
    update: bool = False,
) -> None:
    """Send one message with the forms. Forms that are too large are left out, which is said on
    standard error."""
    segments: dict[str, bytes] = {}
    room = MESSAGE_MAX
    ordered = sorted(list(data.items())[:FORMS_MAX], key=lambda item: item[0] != TEXT)
    for mime, form in ordered:
        part = None if form is None else as_bytes(mime, form)
        if part is None:
            continue
        if len(part) > min(room, FORM_MAX):
            print(
                f"display: the form {mime} has {len(part)} bytes and was left out; "
                f"the most is {FORM_MAX}",
                file=sys.stderr,
            )
            continue
        segments[mime] = part
        room -= len(part)
    header: dict[str, object] = {"kind": "display", "segments": list(segments)}
    if is_main:
        header["main"] = True
    if display_id is not None:
        header["id"] = str(display_id)[:200]
        header["update"] = update
    if metadata:
        try:
            if len(json.dumps(metadata)) <= METADATA_MAX:
                header["metadata"] = metadata
        except (TypeError, ValueError):
            pass
    driver.flush()
    driver.count_display()
    driver.send(json.dumps(header)[1:-1], segments.values())


def display_value(value: object, shown: str) -> None:
    """Display the value of a cell, if it has another form than text."""
    forms = driver.part("forms")
    own = forms.method(value, "_ipython_display_")
    if own is not None:
        forms.called(own)
        return
    data, metadata = forms.forms(value)
    if data:
        publish({TEXT: shown, **data}, metadata, is_main=True)


def display(
    *objs: Any,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    metadata: dict[str, Any] | None = None,
    transient: dict[str, Any] | None = None,
    display_id: str | bool | None = None,
    raw: bool = False,
    clear: bool = False,
    update: bool = False,
    **options: Any,
) -> DisplayHandle | None:
    """Show each object in every form that it offers. With `raw`, an object is a dict of forms."""
    if display_id is True:
        display_id = uuid.uuid4().hex
    name = display_id if isinstance(display_id, str) else None
    forms = driver.part("forms")
    for value in objs:
        if raw:
            data, about = dict(value), {}
        else:
            own = forms.method(value, "_ipython_display_")
            if own is not None:
                forms.called(own)
                continue
            data, about = forms.forms(value, include, exclude)
            data.setdefault(TEXT, driver.cut(repr(value)))
        if include is not None:
            data = {mime: form for mime, form in data.items() if mime in set(include)}
        if exclude is not None:
            data = {mime: form for mime, form in data.items() if mime not in set(exclude)}
        publish(data, {**about, **(metadata or {})}, display_id=name, update=update)
    return DisplayHandle(name) if name is not None else None


def update_display(obj: object, *, display_id: str, **options: Any) -> None:
    """Display an object in place of an earlier one with the same ID."""
    display(obj, display_id=display_id, update=True, **options)


def publish_display_data(
    data: dict[str, Any], metadata: dict[str, Any] | None = None, **options: Any
) -> None:
    """Show something whose forms are given."""
    display(data, raw=True, metadata=metadata)


def clear_output(wait: bool = False) -> None:
    """Does nothing: results are a list, not a screen."""


class DisplayHandle:
    """What `display(..., display_id=...)` returns."""

    def __init__(self, display_id: str | None = None) -> None:
        self.display_id = display_id or uuid.uuid4().hex

    def display(self, obj: object, **options: Any) -> None:
        """Display an object under this ID."""
        display(obj, display_id=self.display_id, **options)

    def update(self, obj: object, **options: Any) -> None:
        """Display an object in place of the earlier one."""
        update_display(obj, display_id=self.display_id, **options)


class DisplayObject:
    """Data with one form. `data` is the data itself; a file is read if `filename` is given."""

    mime = TEXT
    mode = "r"

    def __init__(
        self,
        data: Any = None,
        url: str | None = None,
        filename: str | os.PathLike[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.data, self.url, self.metadata = data, url, metadata or {}
        self.filename = None if filename is None else os.fspath(filename)
        if self.filename is None and data is None and url is not None:
            raise ValueError(f"a session does not download {url!r}: give the data or a file")
        self.reload()

    def reload(self) -> None:
        """Read the file again."""
        if self.filename is not None:
            text = {} if "b" in self.mode else {"encoding": "utf-8"}
            with open(self.filename, self.mode, **text) as file:  # type: ignore[call-overload]
                self.data = file.read()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        return {self.mime: self.data}, ({self.mime: self.metadata} if self.metadata else {})

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} object>"


class TextDisplayObject(DisplayObject):
    """Text of a special kind."""

    def __init__(self, data: Any = None, *args: Any, **options: Any) -> None:
        if data is not None and not isinstance(data, str):
            raise TypeError(f"{type(self).__name__} expects text, not {data!r:.100}")
        super().__init__(data, *args, **options)


class Pretty(TextDisplayObject):
    """Plain text."""


class HTML(TextDisplayObject):
    """HTML."""

    mime = "text/html"

    def __html__(self) -> str:
        return str(self.data)


class Markdown(TextDisplayObject):
    """Markdown."""

    mime = "text/markdown"


class Latex(TextDisplayObject):
    """LaTeX."""

    mime = "text/latex"


class Math(TextDisplayObject):
    """A formula in LaTeX."""

    mime = "text/latex"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        return {self.mime: f"$\\displaystyle {str(self.data).strip('$')}$"}


class SVG(TextDisplayObject):
    """An SVG image."""

    mime = "image/svg+xml"


class Javascript(TextDisplayObject):
    """A script for a browser. A session only passes it on."""

    mime = "application/javascript"


class JSON(DisplayObject):
    """Data that JSON can represent, or its text."""

    mime = JSON_FORM

    def __init__(self, data: Any = None, *args: Any, expanded: bool = False, **options: Any):
        super().__init__(data, *args, **options)
        if isinstance(self.data, str):
            self.data = json.loads(self.data)


SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


class Image(DisplayObject):
    """An image: its bytes, or a file."""

    mode = "rb"

    def __init__(
        self,
        data: Any = None,
        url: str | None = None,
        filename: str | os.PathLike[str] | None = None,
        format: str | None = None,
        embed: bool | None = None,
        width: int | None = None,
        height: int | None = None,
        metadata: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(data, str | os.PathLike) and filename is None:
            data, filename = None, data
        size = {"width": width, "height": height}
        known = {name: value for name, value in size.items() if value is not None}
        self.width, self.height = width, height
        super().__init__(data, url, filename, {**(metadata or {}), **known})
        self.data = bytes(self.data or b"")
        found = next(
            (kind for start, kind in SIGNATURES.items() if self.data.startswith(start)), ""
        )
        kind = (format or found or "png").lower()
        self.format = "jpeg" if kind == "jpg" else kind
        self.mime = f"image/{self.format}"


def display_html(*objs: Any, **options: Any) -> None:
    """Show only the form `text/html`."""
    display(*objs, include=("text/html", TEXT), **options)


def display_markdown(*objs: Any, **options: Any) -> None:
    """Show only the form `text/markdown`."""
    display(*objs, include=("text/markdown", TEXT), **options)


def display_latex(*objs: Any, **options: Any) -> None:
    """Show only the form `text/latex`."""
    display(*objs, include=("text/latex", TEXT), **options)


def display_svg(*objs: Any, **options: Any) -> None:
    """Show only the form `image/svg+xml`."""
    display(*objs, include=("image/svg+xml", TEXT), **options)


def display_png(*objs: Any, **options: Any) -> None:
    """Show only the form `image/png`."""
    display(*objs, include=("image/png", TEXT), **options)


def display_jpeg(*objs: Any, **options: Any) -> None:
    """Show only the form `image/jpeg`."""
    display(*objs, include=("image/jpeg", TEXT), **options)


def display_json(*objs: Any, **options: Any) -> None:
    """Show only the form `application/json`."""
    display(*objs, include=(JSON_FORM, TEXT), **options)


def display_pretty(*objs: Any, **options: Any) -> None:
    """Show only the form `text/plain`."""
    display(*objs, include=(TEXT,), **options)
