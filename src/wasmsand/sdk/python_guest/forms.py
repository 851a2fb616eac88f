"""The MIME forms of a value: what IPython's protocol of `_repr_*_` methods offers, and the rows of
tables.

Rules: a method that fails or returns None offers nothing; its traceback goes to standard error, as
in IPython. Forms are str, bytes, or JSON values (for `application/json`).
"""

from __future__ import annotations

import math
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wasmsand.sdk.python_driver import driver

METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_latex_": "text/latex",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
ROWS_MAX, CELLS_MAX = 500, 10_000
DEPTH_MAX = 50
CANARY = "_this_method_does_not_exist_"


def method(value: object, name: str) -> Any:
    """A method of the value, or None. Classes have methods only for their instances, and objects
    that have every attribute (proxies, mocks) have none."""
    if isinstance(value, type):
        return None
    try:
        found = getattr(value, name, None)
        if found is None or getattr(value, CANARY, None) is not None:
            return None
    except Exception:
        return None
    return found if callable(found) else None


def called(function: Any, *args: object, **options: object) -> Any:
    """What the method returns; None, and its traceback on standard error, if it fails."""
    try:
        return function(*args, **options)
    except NotImplementedError:
        return None
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return None


def forms(
    value: object, include: object = None, exclude: object = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The forms of a value except `text/plain`, and their metadata."""
    data: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    is_pillow = type(value).__module__.startswith("PIL.")  # encoding an image twice takes long
    for name, mime in METHODS.items():
        function = method(value, name)
        if function is None or (mime == "image/jpeg" and is_pillow and "image/png" in data):
            continue
        form = called(function)
        if isinstance(form, tuple) and len(form) == 2:
            form, metadata[mime] = form
        if form is not None:
            data[mime] = form
    if type(value).__module__.startswith("matplotlib"):
        picture = driver.part("figures").picture(value)
        if picture is not None:
            data["image/png"] = picture
    if "application/json" not in data:
        add_rows(value, data, metadata)
    bundle = method(value, "_repr_mimebundle_")
    if bundle is not None:
        offered = called(bundle, include=include, exclude=exclude)
        if isinstance(offered, tuple) and len(offered) == 2:
            offered, more = offered
            if isinstance(more, dict):
                metadata.update(more)
        if isinstance(offered, dict):
            data.update(offered)
    return data, metadata


def add_rows(value: object, data: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Add the rows of a table (pandas, polars, and what has the same methods) as JSON: a list of
    objects, one for each row. An index that is not just a count of the rows is a column. Tables
    in which two columns have the same name do not have this form."""
    table: Any = value
    try:
        if method(value, "to_frame") and method(value, "to_dict"):
            table = table.to_frame()
            html = method(table, "_repr_html_")
            if html is not None and "text/html" not in data:
                data["text/html"] = html()
        if not method(table, "head") or not hasattr(table, "columns"):
            return
        names = [str(name) for name in table.columns]
        if len(set(names)) < len(names) or len(names) > CELLS_MAX:
            return
        part = table.head(min(ROWS_MAX, CELLS_MAX // max(1, len(names))))
        if method(table, "to_dicts"):
            rows = part.to_dicts()
        elif method(table, "to_dict"):
            index = getattr(part, "index", None)
            if index is not None and type(index).__name__ != "RangeIndex":
                part = part.reset_index()
            rows = part.to_dict(orient="records")
        else:
            return
        data["application/json"] = [
            {str(name): plain(cell) for name, cell in row.items()} for row in rows
        ]
        if len(table) > len(rows):
            metadata["application/json"] = {"rows": len(table)}
    except Exception:
        pass  # this table has no rows in this form


def plain(value: Any, depth: int = 0) -> Any:
    """The nearest JSON value: numbers of numpy become Python's, NaN and NaT null, dates ISO 8601,
    anything else its text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 1024 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth < DEPTH_MAX:
        if isinstance(value, dict):
            return {str(key): plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item, depth + 1) for item in value]
        item = method(value, "item")
        if item is not None and getattr(value, "shape", None) == ():
            return plain(item(), depth + 1)
    try:
        if value != value:
            return None  # NaT and other missing values
    except Exception:
        pass
    iso = method(value, "isoformat")
    return iso() if iso is not None else driver.cut(str(value))
