"""Figures of matplotlib: shown as PNG, once, and closed.

Rules: matplotlib is never imported here; pyplot's own functions do the work, as in any program. The
backend is Agg. `show` displays the open figures at once; those left open are displayed at the end
of the cell, as in notebooks.
"""

from __future__ import annotations

import io
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wasmsand.sdk.python_driver import driver


def picture(value: Any) -> bytes | None:
    """A figure as PNG, or None if the value is not a figure. An open one is closed, so that it is
    not shown again at the end of the cell."""
    if not callable(getattr(value, "savefig", None)) or not hasattr(value, "canvas"):
        return None
    stream = io.BytesIO()
    try:
        value.savefig(stream, format="png", bbox_inches="tight", dpi=value.dpi)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return None
    finally:
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        number = getattr(value, "number", None)
        if pyplot is not None and number is not None and number in pyplot.get_fignums():
            pyplot.close(value)
    return stream.getvalue()


def show(*_args: object, **_options: object) -> None:
    """`pyplot.show()`: display the open figures, and close them."""
    pyplot: Any = sys.modules["matplotlib.pyplot"]
    for number in pyplot.get_fignums():
        driver.part("display").display(pyplot.figure(number))


def show_figure(figure: Any, *_args: object, **_options: object) -> None:
    """`Figure.show()`."""
    driver.part("display").display(figure)


def show_open_ones() -> None:
    """Display what a cell has left open."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    try:
        hook(pyplot)
        show()
    except Exception:
        traceback.print_exc(file=sys.stderr)


def hook(pyplot: Any) -> None:
    """Called when `matplotlib.pyplot` was imported."""
    if getattr(pyplot, "show", show) is not show:
        pyplot.show = show
        figure = getattr(pyplot, "Figure", None)
        if isinstance(figure, type):
            figure.show = show_figure  # type: ignore[attr-defined]
