#| packages: pandas openpyxl
import pandas as pd

df = pd.DataFrame(
    {
        "name": ["Ada", "Alan"],
        "n": [1, 2],
        "x": [1.5, None],
        "d": pd.to_datetime(["2024-01-01", "2024-06-30"]),
    }
)
with pd.ExcelWriter("book.xlsx") as writer:
    df.to_excel(writer, sheet_name="People", index=False)
    df.describe().to_excel(writer, sheet_name="Stats")
print(pd.read_excel("book.xlsx"), pd.read_excel("book.xlsx", sheet_name=None).keys(), sep="\n")
print(
    pd.read_excel("book.xlsx", sheet_name="Stats", index_col=0),
    pd.read_excel("book.xlsx", usecols="A:B", nrows=1),
    sep="\n",
)
import openpyxl

book = openpyxl.load_workbook("book.xlsx")
sheet = book["People"]
print(
    book.sheetnames, sheet.dimensions, [[cell.value for cell in row] for row in sheet.iter_rows()]
)
sheet["F1"], sheet["F2"] = "total", "=SUM(B2:B3)"
sheet["A1"].font = openpyxl.styles.Font(bold=True, color="FF0000")
sheet.merge_cells("A5:B5")
book.create_sheet("New").append([1, "two", 3.5, None, True])
book.save("book2.xlsx")
again = openpyxl.load_workbook("book2.xlsx")
print(
    again["People"]["F2"].value,
    again["People"]["A1"].font.b,
    again["New"].max_column,
    again["People"].merged_cells.ranges,
)
