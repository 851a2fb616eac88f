"""Packages for office documents and PDF, in use."""

from __future__ import annotations

import pytest

from userland.recipes.guest_with_pip import Guest


def _install(guest: Guest, name: str, needed: str) -> None:
    if not guest.sandbox.files.exists(f"/usr/lib/python/{needed}"):
        pytest.skip(f"{needed} is not built: run `make packages`")
    guest.run(f"pip install -q {name}")


def test_openpyxl(guest: Guest) -> None:
    guest.run("pip install -q openpyxl")
    program = """
from datetime import date
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Font
book = Workbook()
sheet = book.active
sheet.append(["name", "when", "sum"])
sheet.append(["ä", date(2024, 5, 1), 1.5])
sheet["C3"] = "=SUM(C2:C2)"
sheet["A1"].font = Font(bold=True)
book.save("a.xlsx")
sheet = load_workbook("a.xlsx").active
print([cell.value for cell in sheet[2]], sheet["C3"].value, sheet["A1"].font.bold, sheet.dimensions)
"""
    assert guest.python(program) == (
        "['ä', datetime.datetime(2024, 5, 1, 0, 0), 1.5] =SUM(C2:C2) True A1:C3\n"
    )


def test_xlsxwriter_writes_what_openpyxl_reads(guest: Guest) -> None:
    guest.run("pip install -q xlsxwriter openpyxl")
    program = """
import openpyxl, xlsxwriter
with xlsxwriter.Workbook("b.xlsx") as book:
    sheet = book.add_worksheet("Data")
    sheet.write_row(0, 0, ["a", 1, 2.5])
    chart = book.add_chart({"type": "line"})
    chart.add_series({"values": "=Data!$B$1:$C$1"})
    sheet.insert_chart("A3", chart)
book = openpyxl.load_workbook("b.xlsx")
print(book.sheetnames, [cell.value for cell in book["Data"][1]])
"""
    assert guest.python(program) == "['Data'] ['a', 1, 2.5]\n"


def test_pypdf(guest: Guest) -> None:
    guest.run("pip install -q pypdf")
    program = """
from pypdf import PdfReader, PdfWriter
writer = PdfWriter()
for _ in range(3):
    writer.add_blank_page(width=72, height=144)
writer.add_metadata({"/Title": "T"})
writer.write("a.pdf")
writer = PdfWriter()
writer.append("a.pdf", pages=(0, 2))
writer.pages[0].rotate(90)
writer.encrypt("secret", algorithm="RC4-128")
writer.write("b.pdf")
reader = PdfReader("b.pdf", password="secret")
print(len(reader.pages), reader.pages[0].rotation, int(reader.pages[1].mediabox.height))
print(PdfReader("a.pdf").metadata.title)
"""
    assert guest.python(program) == "2 90 144\nT\n"


def test_reportlab(guest: Guest) -> None:
    _install(guest, "reportlab pypdf", "pillow")
    program = """
from pypdf import PdfReader
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table
styles = getSampleStyleSheet()
document = SimpleDocTemplate("c.pdf")
document.build([Paragraph("Hello <b>world</b>", styles["Title"]), Table([["a", "b"], ["1", "2"]])])
text = PdfReader("c.pdf").pages[0].extract_text()
print("Hello world" in text, len(PdfReader("c.pdf").pages))
"""
    assert guest.python(program) == "True 1\n"


def test_python_docx(guest: Guest) -> None:
    _install(guest, "python-docx", "lxml")
    program = """
from docx import Document
document = Document()
document.add_heading("Title", 0)
document.add_paragraph("Text ").add_run("bold").bold = True
table = document.add_table(rows=1, cols=2)
table.rows[0].cells[1].text = "cell"
document.save("a.docx")
document = Document("a.docx")
print([p.text for p in document.paragraphs], document.tables[0].cell(0, 1).text)
"""
    assert guest.python(program) == "['Title', 'Text bold'] cell\n"


def test_python_pptx(guest: Guest) -> None:
    _install(guest, "python-pptx", "lxml")
    program = """
from pptx import Presentation
show = Presentation()
slide = show.slides.add_slide(show.slide_layouts[0])
slide.shapes.title.text = "Title"
show.save("a.pptx")
print([shape.text for slide in Presentation("a.pptx").slides for shape in slide.shapes][0])
"""
    assert guest.python(program) == "Title\n"
