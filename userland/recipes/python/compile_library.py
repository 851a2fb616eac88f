"""Compile the standard library, by the Python that is being built or one of its version.

Called with the folder of the library. Rules: a compiled file never looks at its source's
date or content, since the image is read-only and its files have no dates; the names in it
are those of the image.
"""

import py_compile
import sys
from pathlib import Path

root = Path(sys.argv[1]).resolve()
place = Path("/usr/lib") / root.name
for source in sorted(root.rglob("*.py")):
    py_compile.compile(
        str(source),
        dfile=str(place / source.relative_to(root)),
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
