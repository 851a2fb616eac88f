#| packages: pandas
import numpy as np
import pandas as pd

rng = np.random.default_rng(5)
n = 500
df = pd.DataFrame(
    {
        "city": rng.choice(["Rome", "Oslo", "Lima"], n),
        "kind": rng.choice(list("xy"), n),
        "sales": rng.normal(100, 20, n).round(2),
        "units": rng.integers(1, 10, n),
    }
)
print(df.groupby("city")["sales"].agg(["count", "mean", "std", "min", "max", "median"]))
print(
    df.groupby(["city", "kind"]).agg(
        total=("sales", "sum"), most=("units", "max"), kinds=("kind", "nunique")
    )
)
print(df.groupby("kind").apply(lambda g: np.average(g.sales, weights=g.units)))
print(
    df.assign(z=df.groupby("city").sales.transform(lambda s: (s - s.mean()) / s.std())).z.describe()
)
print(
    df.groupby("city").head(1),
    df.groupby("city").sales.nlargest(2),
    df.groupby("city").cumcount()[:5],
    sep="\n",
)
print(
    df.pivot_table(
        values="sales", index="city", columns="kind", aggfunc=["mean", "count"], margins=True
    )
)
print(pd.crosstab(df.city, df.kind, normalize="index"), df.groupby("city", sort=False).ngroups)
print(
    df.groupby(pd.cut(df.sales, 4), observed=True).units.sum(),
    df.groupby("city").quantile(0.25, numeric_only=True),
)
print(
    df.groupby("city").filter(lambda g: g.sales.mean() > 99).city.unique(),
    df.groupby("kind").corr(numeric_only=True),
)
print(
    df.nlargest(3, "sales"),
    df.sample(3, random_state=1),
    df.quantile([0.1, 0.9], numeric_only=True),
    sep="\n",
)
print(
    df.value_counts(["city", "kind"]),
    df.select_dtypes("number").corr(),
    df.eval("sales * units").sum(),
    sep="\n",
)
print(
    df.query("city == 'Oslo' and units > 8").head(2),
    df.sales.rolling(50).mean().iloc[-3:],
    df.sales.ewm(span=10).mean().iloc[-1],
)
