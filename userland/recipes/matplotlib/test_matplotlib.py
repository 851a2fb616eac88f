"""matplotlib: plots are those of the released wheel for x86-64, pixel by pixel.

The expected digests were printed by the programs below in the wheel of the same version, with
numpy and Pillow of our versions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import Sandbox

Run = Callable[[str], str]

PLOT = """
import hashlib, io
import matplotlib.pyplot as plt
import numpy as np

def show(name):
    figure = plt.gcf()
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())
    print(name, pixels.shape, hashlib.sha256(pixels.tobytes()).hexdigest()[:12])
    plt.close(figure)

x = np.linspace(0, 10, 500)
rng = np.random.default_rng(0)
grid_x, grid_y = np.meshgrid(np.linspace(-3, 3, 60), np.linspace(-3, 3, 60))
heights = np.exp(-(grid_x**2) - grid_y**2) * np.cos(3 * grid_x)
"""


def test_plots_are_exact(full_python: Run) -> None:
    program = r"""
plt.plot(x, np.sin(x), label="sin")
plt.plot(x, np.cos(x), "--", label="cos")
plt.legend()
plt.grid()
show("plot")
plt.scatter(rng.random(100), rng.random(100), c=rng.random(100), s=200 * rng.random(100), alpha=0.5)
plt.colorbar()
show("scatter")
plt.bar(["a", "b", "c"], [3, 7, 5], yerr=[0.5, 1, 0.2], hatch="//")
show("bar")
plt.hist(rng.normal(size=1000), bins=30)
show("hist")
plt.imshow(rng.random((20, 20)), interpolation="bilinear")
show("imshow")
plt.contourf(grid_x, grid_y, heights, 12)
plt.clabel(plt.contour(grid_x, grid_y, heights, 8, colors="k"))
show("contour")
plt.figure().add_subplot(projection="3d").plot_surface(grid_x, grid_y, heights, cmap="plasma")
show("surface")
plt.tripcolor(rng.random(50), rng.random(50), rng.random(50))
show("triangles")
figure, axes = plt.subplots(2, 2, layout="constrained")
axes[0, 0].pie([1, 2, 3], labels=list("abc"))
axes[0, 1].boxplot([rng.normal(size=50) for _ in range(3)])
axes[1, 0].set_xscale("symlog")
axes[1, 1].text(0.1, 0.5, r"$\frac{\alpha}{\sqrt{\beta}}\sum_{i=0}^n x_i^2$", fontsize=20)
show("layout")
plt.subplot(projection="polar").plot(x, x)
plt.title("Wörld שלום مرحبا Ελλάς", rotation=5)
show("text")
"""
    assert full_python(PLOT + program) == EXPECTED_PLOTS


def test_figures_are_saved_in_all_formats(full_python: Run) -> None:
    program = """
plt.plot(x, np.sin(x))
plt.title("saved")
for kind in ("png", "jpg", "webp", "svg", "pdf", "ps", "eps", "tif"):
    file = io.BytesIO()
    plt.savefig(file, format=kind)
    data = file.getvalue()
    print(kind, data[8:12] if kind == "webp" else data[:4], len(data) > 5000)
"""
    assert full_python(PLOT + program).splitlines() == [
        "png b'\\x89PNG' True",
        "jpg b'\\xff\\xd8\\xff\\xe0' True",
        "webp b'WEBP' True",
        "svg b'<?xm' True",
        "pdf b'%PDF' True",
        "ps b'%!PS' True",
        "eps b'%!PS' True",
        "tif b'II*\\x00' True",
    ]


def test_the_backend_needs_no_display(full_python: Run) -> None:
    program = """
import matplotlib
plt.figure()
print(matplotlib.get_backend(), matplotlib.__version__)
"""
    assert full_python(PLOT + program) == "agg 3.11.2\n"


def test_the_list_of_fonts_is_the_one_a_search_finds(full_python: Run) -> None:
    program = """
import json
from matplotlib import font_manager
from matplotlib.cbook import _get_data_path
font_manager.json_dump(font_manager.FontManager(), "/tmp/found.json")
paths = "/tmp/found.json", _get_data_path("fontlist.json")
found, ready = (json.load(open(path)) for path in paths)
order = lambda font: (font["fname"], font["index"])
for fonts in (found, ready):
    fonts["afmlist"].sort(key=order)
    fonts["ttflist"].sort(key=order)
print(found == ready, len(ready["ttflist"]) > 30)
"""
    assert full_python(program) == "True True\n"


def test_the_ready_list_of_fonts_is_used_whatever_the_home_directory(full_python: Run) -> None:
    program = """
import os
os.environ["HOME"] = "/proc/nothing"
from matplotlib import font_manager
print(os.path.basename(font_manager.findfont("DejaVu Sans")))
print([name for name in os.listdir("/tmp") if name.startswith("fontlist")])
"""
    assert full_python(program).splitlines() == ["DejaVuSans.ttf", "[]"]


def test_fonts_of_the_user_are_found(full_python: Run, sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir -p ~/.fonts")
    fonts = "/usr/lib/python/matplotlib/matplotlib/mpl-data/fonts/ttf"
    sandbox.commands.run(f"cp {fonts}/cmr10.ttf ~/.fonts/own.ttf")
    program = """
from matplotlib import font_manager
print(any(font.fname.endswith("/.fonts/own.ttf") for font in font_manager.fontManager.ttflist))
"""
    assert full_python(program) == "True\n"


def test_settings_of_the_user_apply(full_python: Run, sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/matplotlibrc", "lines.linewidth: 7\nbackend: svg\n")
    program = """
import os
os.chdir("/tmp")
import matplotlib
print(matplotlib.rcParams["lines.linewidth"], matplotlib.get_backend())
"""
    assert full_python(program) == "7.0 svg\n"


EXPECTED_PLOTS = """\
plot (480, 640, 4) 59ee4bea20c5
scatter (480, 640, 4) ed5851f10103
bar (480, 640, 4) f4de50c5c76b
hist (480, 640, 4) e58d91a89d7e
imshow (480, 640, 4) 470d73cd3503
contour (480, 640, 4) 24adf37bb508
surface (480, 640, 4) 4a4d6df8041e
triangles (480, 640, 4) 8ab41d0bbf0f
layout (480, 640, 4) bf6595db20b7
text (480, 640, 4) 93ddfd898c60
"""


@pytest.mark.parametrize(
    "statement",
    [
        "import mpl_toolkits; print(list(mpl_toolkits.__path__) != [])",
        "import mpl_toolkits.mplot3d as found; print(hasattr(found, 'Axes3D'))",
        "from mpl_toolkits.mplot3d import Axes3D; print(Axes3D.name == '3d')",
        "from mpl_toolkits.axes_grid1 import make_axes_locatable as f; print(callable(f))",
        "import matplotlib.pyplot, mpl_toolkits; print(hasattr(mpl_toolkits, 'mplot3d'))",
    ],
)
def test_toolkits_are_imported(full_python: Run, statement: str) -> None:
    assert full_python(statement) == "True\n"
