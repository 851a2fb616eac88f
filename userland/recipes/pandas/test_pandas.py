"""pandas: its extension modules are part of the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest


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


@pytest.mark.xfail(strict=True, reason="L190: Parquet files need pyarrow")
def test_parquet_files_are_read(full_python: Callable[[str], str]) -> None:
    printed = full_python(
        """
import pandas as pd
pd.DataFrame({"n": [1, 2]}).to_parquet("/tmp/t.parquet")
print(pd.read_parquet("/tmp/t.parquet").n.sum())
"""
    )
    assert printed == "3\n"


def test_the_error_of_parquet_files_names_what_is_missing(
    full_python: Callable[[str], str],
) -> None:
    printed = full_python(
        """
import pandas as pd
try:
    pd.read_parquet("/tmp/t.parquet")
except ImportError as error:
    print("pyarrow" in str(error), "fastparquet" in str(error))
"""
    )
    assert printed == "True True\n"
