"""diff, cmp, diff3 and sdiff; those that start other programs find them."""

from __future__ import annotations

from userland.recipes.script_tables import ends

test_comparisons = ends(
    ("diff a a", "", 0),
    ("diff a b", "2c2\n< y\n---\n> Y\n", 1),
    ("diff -u a b | tail -n +3", "@@ -1,3 +1,3 @@\n x\n-y\n+Y\n z\n", 0),
    ("diff -rq d e", "Only in d: only\n", 1),
    ("cmp a b", "a b differ: char 3, line 2\n", 1),
    ("cmp -s a a", "", 0),
    ("diff3 a b a", "====2\n1:2c\n3:2c\n  y\n2:2c\n  Y\n", 0),
    ("sdiff -sw 20 a b", "y     |\tY\n", 1),
    ("diff -l a b | wc -l", "66\n", 0),
    setup="printf 'x\\ny\\nz\\n' > a; printf 'x\\nY\\nz\\n' > b; mkdir d e; touch d/only",
)
