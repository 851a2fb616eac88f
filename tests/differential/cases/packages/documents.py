#| packages: python-docx pypdf reportlab
import io
import docx
import pypdf
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen import canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

d = docx.Document()
d.add_heading("Title", 0)
d.add_paragraph("A plain paragraph with ").add_run("bold").bold = True
t = d.add_table(rows=1, cols=2)
t.rows[0].cells[0].text = "left"
d.save("d.docx")
back = docx.Document("d.docx")
print(
    [(p.style.name, p.text) for p in back.paragraphs],
    back.tables[0].cell(0, 0).text,
    [r.bold for r in back.paragraphs[1].runs],
)
c = canvas.Canvas("c.pdf", pagesize=A4, invariant=1)
c.drawString(100, 750, "Hello PDF")
c.circle(200, 500, 40, fill=1)
c.showPage()
c.drawString(100, 700, "Second page")
c.save()
styles = getSampleStyleSheet()
table = Table([["a", "b"], ["1", "2"]])
table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 1, colors.black)]))
SimpleDocTemplate("p.pdf").build(
    [Paragraph("Some <b>bold</b> text", styles["Normal"]), Spacer(1, 12), table]
)
r = pypdf.PdfReader("c.pdf")
print(
    len(r.pages),
    [p.extract_text() for p in r.pages],
    r.pages[0].mediabox,
    pypdf.PdfReader("p.pdf").pages[0].extract_text(),
)
w = pypdf.PdfWriter()
for page in reversed(r.pages):
    w.add_page(page).rotate(90)
w.add_metadata({"/Title": "merged"})
w.encrypt("secret", algorithm="RC4-128")
out = io.BytesIO()
w.write(out)
again = pypdf.PdfReader(out, password="secret")
print(
    again.is_encrypted, again.metadata.title, again.pages[0].rotation, again.pages[0].extract_text()
)
