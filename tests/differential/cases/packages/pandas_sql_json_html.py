#| packages: pandas lxml
import io
import sqlite3
import pandas as pd

df = pd.DataFrame({"id": [1, 2, 3], "city": ["Rome", "Oslo", "Łódź"], "t": [20.5, -3.0, None]})
with sqlite3.connect("w.db") as db:
    df.to_sql("w", db, index=False)
    print(
        pd.read_sql("select city, t from w where t > ? order by t", db, params=(-10,)),
        pd.read_sql_query("select count(*) n from w", db),
        sep="\n",
    )
for orient in ("records", "columns", "index", "split", "values", "table"):
    print(orient, df.to_json(orient=orient, force_ascii=False))
print(
    pd.read_json(io.StringIO(df.to_json(orient="split")), orient="split"),
    pd.read_json(io.StringIO('{"a":1}\n{"a":2}'), lines=True),
    sep="\n",
)
page = "<html><body><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>x</td></tr><tr><td>2</td><td>y</td></tr></table></body></html>"
print(pd.read_html(io.StringIO(page))[0])
df.to_xml("out.xml", index=False)
print(open("out.xml").read(), pd.read_xml("out.xml"), sep="\n")
df.to_pickle("df.pkl")
print(
    pd.read_pickle("df.pkl").equals(df),
    df.to_dict("records"),
    df.to_records(index=False),
    list(df.itertuples(index=False))[0],
    sep="\n",
)
