#| packages: pandas
import numpy as np
import pandas as pd

s = pd.Series([" Ada ", "alan TURING", None, "grace-hopper", "Zoë 42"])
print(
    s.dtype,
    s.str.strip().str.title(),
    s.str.contains("a", na=False),
    s.str.extract(r"(\w+)\W+(\w+)"),
    sep="\n",
)
print(
    s.str.replace(r"[aeiou]", "*", regex=True),
    s.str.len(),
    s.str.cat(sep="|", na_rep="?"),
    s.str.findall(r"\d"),
    sep="\n",
)
print(
    s.str.split("-", expand=True),
    s.str.pad(12, fillchar="."),
    s.str.encode("utf-8").iloc[4],
    s.str.get_dummies(" ").shape,
    sep="\n",
)
n = pd.array([1, None, 3], dtype="Int64")
print(
    n,
    n.sum(),
    pd.array([True, None], dtype="boolean") | True,
    pd.Series([1.5, None], dtype="Float64") * 2,
    sep="\n",
)
df = pd.DataFrame(
    {
        "a": [1, np.nan, 3, np.nan],
        "b": ["x", None, "y", "x"],
        "c": pd.to_datetime(["2024-01-01", None, None, "2024-01-04"]),
    }
)
print(
    df.isna(),
    df.ffill(),
    df.bfill(),
    df.interpolate(numeric_only=True) if False else df.a.interpolate(),
    df.dropna(thresh=2),
    sep="\n",
)
print(
    df.fillna({"a": 0, "b": "?"}),
    df.replace({"x": "X"}),
    df.convert_dtypes().dtypes,
    df.b.astype("category").cat.codes,
    sep="\n",
)
print(
    df.a.where(df.a > 1, -1),
    df.mask(df.isna(), 0) if False else "",
    df.combine_first(pd.DataFrame({"a": [9] * 4})),
    sep="\n",
)
c = pd.Series(["lo", "hi", "lo"], dtype=pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True))
print(c.cat.categories, c.max(), c.value_counts(), c.sort_values(), (c > "lo"), sep="\n")
print(
    pd.Series([3, 1, 2], index=list("cab")).sort_index(),
    pd.Series({"x": 1}) + pd.Series({"y": 2}),
    pd.isna([None, 1, np.nan]),
    sep="\n",
)
for bad in (
    lambda: df["zz"],
    lambda: df.loc[9],
    lambda: pd.to_numeric(pd.Series(["1", "x"])),
    lambda: df.a.astype(int),
):
    try:
        bad()
    except Exception as error:
        print(type(error).__name__, str(error)[:80])
