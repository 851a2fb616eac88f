"""What matplotlib reads when it is imported: variables, and files in the user's directories."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _forget(function: Any) -> None:
    """Let a function that keeps its first result compute it again."""
    kept = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    kept["called"].cell_contents = False


def _read_settings(matplotlib: Any) -> None:
    """The directories of the user, the file `matplotlibrc`, and the variable MPLBACKEND."""
    _forget(matplotlib.get_configdir)
    _forget(matplotlib.get_cachedir)
    file = matplotlib.matplotlib_fname()
    if file != os.path.join(matplotlib.get_data_path(), "matplotlibrc"):
        matplotlib.rcParams._update_raw(matplotlib._rc_params_in_file(file))
        matplotlib.rcParamsOrig._update_raw(matplotlib.rcParams)
    if backend := os.environ.get("MPLBACKEND"):
        matplotlib.rcParams["backend"] = backend


def _find_fonts(font_manager: Any) -> None:
    """Fonts of the system and the user, if there are any."""
    home = os.path.expanduser("~")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local/share")
    font_manager._HOME = font_manager.Path(home)
    font_manager.X11FontDirectories[-2:] = [
        os.path.join(data, "fonts"),
        os.path.join(home, ".fonts"),
    ]
    if any(map(os.path.isdir, font_manager.X11FontDirectories)):
        found = font_manager._load_fontmanager()
        font_manager.fontManager.__dict__.update(found.__dict__)


def _find_styles(style: Any) -> None:
    folder = os.path.join(style.mpl.get_configdir(), "stylelib")
    style.USER_LIBRARY_PATHS[:] = [folder]
    if os.path.isdir(folder):
        style.reload_library()


RENEW = {
    "matplotlib": _read_settings,
    "matplotlib.font_manager": _find_fonts,
    "matplotlib.style": _find_styles,
}
