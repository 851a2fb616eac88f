#| packages: pandas
import numpy as np
import pandas as pd

dates = pd.date_range("20130101", periods=6)
df = pd.DataFrame(
    np.random.default_rng(0).standard_normal((6, 4)), index=dates, columns=list("ABCD")
)
print(df, df.dtypes, df.describe(), sep="\n")
print(
    df.sort_values("B"),
    df["A"],
    df[0:3],
    df.loc["20130102":"20130104", ["A", "B"]],
    df.iloc[3:5, 0:2],
    sep="\n",
)
print(df[df["A"] > 0], df[df > 0], sep="\n")
df2 = df.copy()
df2["E"] = ["one", "one", "two", "three", "four", "three"]
print(df2[df2["E"].isin(["two", "four"])])
df.at[dates[0], "A"] = np.nan
print(
    df.dropna(),
    df.fillna(5),
    df.isna().sum(),
    df.mean(),
    df.agg(lambda x: np.mean(x) * 5.6),
    sep="\n",
)
print(pd.concat([df[:2], df[4:]]), df.T.shape, df.to_numpy().shape, df.index, sep="\n")
s = pd.Series([1, 3, 5, np.nan, 6, 8])
print(s, s.value_counts(), s.cumsum(), s.shift(2), s.rank(), sep="\n")
df2.info(memory_usage=False)
