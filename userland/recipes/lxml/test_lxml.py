"""lxml: XML and HTML with libxml2 and libxslt inside the interpreter."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[str], str]


def test_documents_are_parsed_searched_and_written(full_python: Run) -> None:
    printed = full_python(
        """
import io
from lxml import etree
from lxml.builder import E
root = etree.XML("<root><a x='1'>one</a><a x='2'>two<b/>tail</a><!-- c --><?pi data?></root>")
print(etree.tostring(root).decode())
print([a.get("x") for a in root.iterfind("a")], root.xpath("//a[@x>1]/b/following::text()"))
print(etree.tostring(E.p(E.b("Hello", {"class": "x"}), E.br()), pretty_print=True).decode(), end="")
events = etree.iterparse(io.BytesIO(b"<a><b/></a>"), events=("start", "end"))
print([(event, element.tag) for event, element in events])
latin = "<?xml version='1.0' encoding='iso-8859-15'?><a>\\u20ac</a>".encode("iso-8859-15")
print(ascii(etree.fromstring(latin).text))
print(etree.tostring(etree.XML("<a z='1' b='2'><c/></a>"), method="c14n").decode())
out = io.BytesIO()
with etree.xmlfile(out) as stream, stream.element("rows"):
    stream.write(etree.Element("row", n="1"))
print(out.getvalue().decode())
functions = etree.FunctionNamespace("http://example.org/f")
functions["up"] = lambda context, text: text[0].upper()
print(etree.XML("<a>low</a>").xpath("f:up(text())", namespaces={"f": "http://example.org/f"}))
"""
    )
    assert printed.splitlines() == [
        '<root><a x="1">one</a><a x="2">two<b/>tail</a><!-- c --><?pi data?></root>',
        "['1', '2'] ['tail']",
        "<p>",
        '  <b class="x">Hello</b>',
        "  <br/>",
        "</p>",
        "[('start', 'a'), ('start', 'b'), ('end', 'b'), ('end', 'a')]",
        r"'\u20ac'",
        '<a b="2" z="1"><c></c></a>',
        '<rows><row n="1"/></rows>',
        "LOW",
    ]


def test_errors_name_the_line_and_column(full_python: Run) -> None:
    printed = full_python(
        """
from lxml import etree
for text in ("<a><b></a>", "<a>&nbsp;</a>", ""):
    try:
        etree.fromstring(text)
    except etree.XMLSyntaxError as error:
        print(error)
"""
    )
    assert printed.splitlines() == [
        "Opening and ending tag mismatch: b line 1 and a, line 1, column 11 (<string>, line 1)",
        "Entity 'nbsp' not defined, line 1, column 10 (<string>, line 1)",
        "Document is empty, line 1, column 1 (<string>, line 1)",
    ]


def test_style_sheets_transform_with_extensions_and_parameters(full_python: Run) -> None:
    printed = full_python(
        """
from lxml import etree
style = etree.XML('''<xsl:stylesheet version="1.0" xmlns:str="http://exslt.org/strings"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform" exclude-result-prefixes="str">
  <xsl:param name="who"/>
  <xsl:template match="/"><out who="{$who}"><xsl:for-each select="//item">
    <xsl:sort select="@n" data-type="number"/>
    <i><xsl:value-of select="concat(@n, ':', str:padding(3, '*'), .)"/></i>
  </xsl:for-each></out></xsl:template>
</xsl:stylesheet>''')
items = etree.XML("<l><item n='10'>x</item><item n='9'>y</item></l>")
print(etree.tostring(etree.XSLT(style)(items, who="'me'")).decode())
"""
    )
    assert printed == '<out who="me"><i>9:***y</i><i>10:***x</i></out>\n'


def test_documents_are_validated(full_python: Run) -> None:
    printed = full_python(
        """
import io
from lxml import etree, isoschematron
schema = etree.XMLSchema(etree.XML('''<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="n" type="xs:positiveInteger"/></xs:schema>'''))
print(schema.validate(etree.XML("<n>5</n>")), schema.validate(etree.XML("<n>-5</n>")))
print(schema.error_log.last_error.message)
relax = etree.RelaxNG(etree.XML('''<element name="a" xmlns="http://relaxng.org/ns/structure/1.0">
<oneOrMore><element name="b"><text/></element></oneOrMore></element>'''))
print(relax.validate(etree.XML("<a><b/></a>")), relax.validate(etree.XML("<a/>")))
types = etree.DTD(io.StringIO("<!ELEMENT a (b*)><!ELEMENT b EMPTY>"))
print(types.validate(etree.XML("<a><b/></a>")), types.validate(etree.XML("<a><c/></a>")))
rules = isoschematron.Schematron(etree.XML('''<schema xmlns="http://purl.oclc.org/dsdl/schematron">
<pattern><rule context="sum"><assert test="@total = count(x)">wrong</assert></rule></pattern>
</schema>'''))
print([rules.validate(etree.XML(f"<sum total='{n}'><x/><x/></sum>")) for n in (2, 3)])
"""
    )
    assert printed.splitlines() == [
        "True False",
        "Element 'n': '-5' is not a valid value of the atomic type 'xs:positiveInteger'.",
        "True False",
        "True False",
        "[True, False]",
    ]


def test_pages_forms_and_objects_are_read(full_python: Run) -> None:
    printed = full_python(
        """
from lxml import html, objectify
page = html.fromstring('''<html><body><div class="post big"><h1>T&eacute;st</h1><p>One
<p>Two <a href="/x?a=1&b=2">link</a></div><form action="/go"><input name=q value=7>
<select name=s><option value=1><option value=2 selected></select></form></body></html>''')
print([p.text_content().strip() for p in page.xpath("//p")], page.find_class("big")[0].tag)
print(page.forms[0].form_values(), html.tostring(page.xpath("//h1")[0]).decode())
page.make_links_absolute("http://example.org/")
print([link[2] for link in page.iterlinks()])
record = objectify.fromstring("<r><n>5</n><f>2.5</f><s>x</s><b>true</b><n>7</n></r>")
print(record.n + 1, record.f * 2, record.s, record.b, [int(n) for n in record.n])
"""
    )
    assert printed.splitlines() == [
        "['One', 'Two link'] div",
        "[('q', '7'), ('s', '2')] <h1>T&#233;st</h1>",
        "['http://example.org/x?a=1&b=2', 'http://example.org/go']",
        "6 5.0 x True [5, 7]",
    ]


def test_compressed_files_are_read_and_features_are_those_of_the_wheel(full_python: Run) -> None:
    printed = full_python(
        """
import gzip
from lxml import etree
with gzip.open("/tmp/x.xml.gz", "wb") as stream:
    stream.write(b"<z>zipped</z>")
parser = etree.XMLParser(decompress=True)
print(etree.parse("/tmp/x.xml.gz", parser).getroot().text)
etree.ElementTree(etree.XML("<a/>")).write("/tmp/y.xml.gz", compression=6)
print(gzip.open("/tmp/y.xml.gz").read())
print(*sorted(etree.LIBXML_FEATURES))
"""
    )
    assert printed.splitlines() == [
        "zipped",
        "b'<a/>'",
        "catalog html iconv regexp schematron xmlschema xpath zlib",
    ]


def test_pandas_reads_tables_of_pages_and_of_xml(full_python: Run) -> None:
    printed = full_python(
        """
import io
import pandas as pd
page = '''<table><thead><tr><th>Name</th><th>n</th></tr></thead>
<tbody><tr><td>a &amp; b</td><td>1,200</td></tr><tr><td>c<td>3</tbody></table>
<table id=second><tr><td>x</td></tr></table>'''
tables = pd.read_html(io.StringIO(page), flavor="lxml")
print(tables[0].to_dict("list"), tables[1].values.tolist())
rows = "<r><row><a>1</a><b>x</b></row><row><a>2</a><b>y</b></row></r>"
print(pd.read_xml(io.StringIO(rows)).to_dict("list"))
print(tables[0].to_xml(index=False).splitlines()[3])
"""
    )
    assert printed.splitlines() == [
        "{'Name': ['a & b', 'c'], 'n': [1200, 3]} [['x']]",
        "{'a': [1, 2], 'b': ['x', 'y']}",
        "    <Name>a &amp; b</Name>",
    ]
