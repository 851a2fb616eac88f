#| packages: pandas
import io
import pandas as pd

text = """id;name;joined;amount;active
1;Ada Lovelace;10/12/1815;1.234,50;yes
2;Alan Turing;23/06/1912;99,9;no
3;;07/12/1906;;yes
3;Grace Hopper;07/12/1906;1.000,00;yes
"""
df = pd.read_csv(
    io.StringIO(text), sep=";", decimal=",", thousands=".", true_values=["yes"], false_values=["no"]
)
print(df, df.dtypes, df.isna().sum(), sep="\n")
df["joined"] = pd.to_datetime(df["joined"], format="%d/%m/%Y")
df = df.dropna(subset=["name"]).drop_duplicates("id").set_index("id")
df["first"] = df["name"].str.split().str[0].str.upper()
df["year"] = df.joined.dt.year
df["size"] = pd.cut(df.amount, [0, 100, 10_000], labels=["small", "large"])
print(df, df.dtypes, df.memory_usage(deep=False).shape, sep="\n")
df.to_csv("out.csv", float_format="%.2f")
df.reset_index().to_json("out.json", orient="records", date_format="iso", indent=1)
print(open("out.csv").read(), open("out.json").read())
print(
    df.to_markdown() if False else df.to_string(),
    df.to_html(),
    df.to_latex() if False else "",
    sep="\n",
)
parts = pd.read_csv("out.csv", index_col="id", parse_dates=["joined"], chunksize=1)
print([chunk.index[0] for chunk in parts])
print(
    pd.read_csv(io.StringIO("a,b\n1,2\n3,x"), dtype=str),
    pd.read_csv(io.StringIO("1 2\n3 4"), sep=r"\s+", header=None),
    sep="\n",
)
print(
    pd.read_fwf(io.StringIO("ab 12\ncd 34"), header=None),
    pd.json_normalize([{"a": {"b": 1}, "c": 2}]),
    sep="\n",
)
try:
    pd.read_csv(io.StringIO("a,b\n1,2,3,4\n1,2,3"))
    pd.read_csv(io.StringIO("a\n1\n2,3,4"))
except pd.errors.ParserError as error:
    print(type(error).__name__, error)
