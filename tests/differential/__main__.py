"""`python -m tests.differential`: build the native programs that the tests compare with.

The tests do that themselves; this shows the progress.
"""

from tests.differential.reference import build_reference, needed_recipes

build_reference(needed_recipes())
