"""Installs the Debian packages that builds need, before `wasmsand build` can run.

`scripts/make_venv` runs it, `python3 -m userland.builder.ahead NAME ...`, while pip fills the
virtual environment. Rules: it needs only the standard library; if the compiler is installed, it
does nothing, because the builder knows which recipes are cached and installs what the others need;
its failure is not an error, because the builder then tries again and reports what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from userland.builder.commands import Commands
from userland.builder.errors import BuildError
from userland.builder.recipe import built_by_default, load_recipes, with_dependencies
from userland.builder.toolchain import find_toolchain, install_all

_ROOT = Path(__file__).resolve().parents[2]


def main(names: Sequence[str]) -> int:
    """Install what building these recipes needs, or (`all`) those that are built by default."""
    commands = Commands()
    recipes = load_recipes(_ROOT / "userland/recipes", _ROOT)
    chosen = with_dependencies(built_by_default(recipes) if "all" in names else names, recipes)
    try:
        if find_toolchain(commands) is None:
            install_all(chosen.values(), commands, lambda message: print(f"make: {message}"))
    except BuildError:
        return 1
    except KeyboardInterrupt:
        commands.stop()
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
