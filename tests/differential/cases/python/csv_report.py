"""Sales by region from a CSV file with quoted fields."""

import csv
from collections import defaultdict
from pathlib import Path

Path("sales.csv").write_text(
    'region,product,units,price\n"North, upper",pen,10,1.50\nSouth,"cup ""big""",3,7.25\n'
    '"North, upper",cup,1,7.25\nSouth,pen,,1.50\n'
)
totals: defaultdict[str, float] = defaultdict(float)
with open("sales.csv", newline="") as file:
    for row in csv.DictReader(file):
        totals[row["region"]] += int(row["units"] or 0) * float(row["price"])
for region, total in sorted(totals.items(), key=lambda item: -item[1]):
    print(f"{region:<15}{total:>10,.2f}")
with open("out.csv", "w", newline="") as file:
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["region", "total"])
    writer.writerows(totals.items())
print(Path("out.csv").read_bytes())
