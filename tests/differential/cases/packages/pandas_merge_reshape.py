#| packages: pandas
import numpy as np
import pandas as pd

left = pd.DataFrame({"key": ["K0", "K1", "K2", "K2"], "A": range(4)})
right = pd.DataFrame({"key": ["K0", "K2", "K3"], "B": [1.5, 2.5, 3.5]})
for how in ("inner", "left", "right", "outer", "cross"):
    print(
        how,
        pd.merge(
            left, right, how=how, **({} if how == "cross" else {"on": "key", "indicator": True})
        ),
        sep="\n",
    )
print(left.join(right.set_index("key"), on="key"), pd.concat([left, right], axis=1), sep="\n")
try:
    pd.merge(left, right, on="key", validate="one_to_one")
except pd.errors.MergeError as error:
    print(error)
wide = pd.DataFrame({"id": [1, 2], "q1": [10, 20], "q2": [30, 40]})
long = wide.melt(id_vars="id", var_name="quarter", value_name="v")
print(
    long,
    long.pivot(index="id", columns="quarter", values="v"),
    wide.set_index("id").stack(),
    sep="\n",
)
index = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["l", "n"])
m = pd.DataFrame({"x": np.arange(4), "y": np.arange(4.0) ** 2}, index=index)
print(
    m,
    m.loc["b"],
    m.xs(1, level="n"),
    m.unstack(),
    m.swaplevel().sort_index(),
    m.groupby(level="l").sum(),
    sep="\n",
)
quotes = pd.DataFrame(
    {"time": pd.to_datetime(["09:00:01", "09:00:03"], format="%H:%M:%S"), "bid": [1, 2]}
)
trades = pd.DataFrame(
    {"time": pd.to_datetime(["09:00:02", "09:00:05"], format="%H:%M:%S"), "p": [9, 8]}
)
print(
    pd.merge_asof(trades, quotes, on="time"),
    pd.get_dummies(left.key),
    left.explode("A").shape,
    sep="\n",
)
print(
    pd.wide_to_long(wide.rename(columns={"q1": "q_1", "q2": "q_2"}), "q_", "id", "n"),
    left.compare(left.assign(A=0)),
    sep="\n",
)
print(
    pd.factorize(left.key),
    pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True).min(),
    left.T,
    sep="\n",
)
