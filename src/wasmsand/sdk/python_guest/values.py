"""Which values an answer contains as they are.

Rules: only what JSON can represent without a change.
"""

from __future__ import annotations

DEPTH_MAX, INTEGER_BITS_MAX = 50, 1024


def is_plain(value: object, depth: int = 0) -> bool:
    """Whether JSON can represent the value without a change."""
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return True
    if isinstance(value, int):
        return kind is int and value.bit_length() <= INTEGER_BITS_MAX
    if depth == DEPTH_MAX:
        return False
    if isinstance(value, list):
        return kind is list and all(is_plain(item, depth + 1) for item in value)
    return (
        isinstance(value, dict)
        and kind is dict
        and all(type(k) is str and is_plain(v, depth + 1) for k, v in value.items())
    )
