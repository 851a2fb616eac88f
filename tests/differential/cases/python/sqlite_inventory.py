"""sqlite3: schema, parameters, transactions, row factories, user functions, full-text search."""

import sqlite3

db = sqlite3.connect("inventory.db")
db.row_factory = sqlite3.Row
db.executescript(
    """CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, price REAL CHECK(price >= 0));
       CREATE VIRTUAL TABLE note USING fts5(body);"""
)
with db:
    db.executemany("INSERT INTO item(name, price) VALUES (?, ?)", [("pen", 1.5), ("cup", 7.25), ("book", 12)])
    db.execute("INSERT INTO note VALUES ('the quick brown fox'), ('lazy dogs sleep')")
for bad in (("pen", 1), ("x", -1), (None, 1)):
    try:
        with db:
            db.execute("INSERT INTO item(name, price) VALUES (?, ?)", bad)
    except sqlite3.IntegrityError as error:
        print(error)
db.create_function("vat", 1, lambda price: round(price * 1.2, 2), deterministic=True)
for row in db.execute("SELECT *, vat(price) AS gross FROM item ORDER BY price DESC"):
    print(dict(row))
print(db.execute("SELECT body FROM note WHERE note MATCH 'fox OR sleep' ORDER BY rank").fetchall()[0][0])
print(db.execute("SELECT json_group_array(name) FROM item").fetchone()[0], db.total_changes)
with sqlite3.connect(":memory:") as copy:
    db.backup(copy)
    print(copy.execute("SELECT count(*), sum(price) FROM item").fetchone())
    print(list(copy.iterdump())[0:2])
try:
    db.execute("SELEC 1")
except sqlite3.OperationalError as error:
    print(error)
db.close()
