"""`python -m tests.differential`: build the native programs with which the tests compare.

The tests build them too; this command shows the progress.
"""

from tests.differential.reference import build_reference, needed_recipes

build_reference(needed_recipes())
