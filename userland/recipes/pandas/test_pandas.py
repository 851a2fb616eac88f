"""pandas: its extension modules are part of the interpreter."""

from __future__ import annotations

from collections.abc import Callable


def test_tables_are_read_grouped_and_printed(full_python: Callable[[str], str]) -> None:
    printed = full_python(
        """
import io
import pandas as pd
table = pd.read_csv(io.StringIO("day,n\\n2024-01-01,1\\n2024-01-02,2\\n2024-01-01,5\\n"))
table["day"] = pd.to_datetime(table["day"])
print(table.groupby("day")["n"].sum().to_dict())
print(table.describe().loc["mean", "n"])
"""
    )
    assert "Timestamp('2024-01-01 00:00:00'): 6" in printed
    assert printed.splitlines()[1].startswith("2.66")
