#| packages: lxml
from io import BytesIO
from lxml import etree, html, objectify

root = etree.Element("root", a="1")
child = etree.SubElement(root, "child", {"name": "ä"})
child.text, child.tail = "text & <more>", "tail"
root.append(etree.Comment("note"))
print(
    etree.tostring(root, encoding="unicode", pretty_print=True),
    etree.tostring(root),
    etree.tostring(root, xml_declaration=True, encoding="utf-8"),
)
doc = etree.fromstring("<x xmlns:n='urn:n'><n:a id='1'>one</n:a><b><c/>two</b><n:a id='2'/></x>")
print(
    doc.xpath("//n:a/@id", namespaces={"n": "urn:n"}),
    doc.xpath("count(//c)"),
    doc.xpath("string(b)"),
    [e.tag for e in doc.iter()],
    doc.find("b/c").getparent().tag,
)
style = etree.XSLT(
    etree.fromstring(
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:template match='/'><r><xsl:for-each select='//c'><i/></xsl:for-each></r></xsl:template></xsl:stylesheet>"
    )
)
print(str(style(doc)), etree.DTD(BytesIO(b"<!ELEMENT x ANY>")).validate(etree.fromstring("<x/>")))
schema = etree.XMLSchema(
    etree.fromstring(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='n' type='xs:int'/></xs:schema>"
    )
)
print(
    schema.validate(etree.fromstring("<n>5</n>")),
    schema.validate(etree.fromstring("<n>x</n>")),
    schema.error_log.last_error.message,
)
page = html.fromstring("<div><p class='k'>Hi <b>you</b><p>two<a href='/x'>link</a></div>")
print(
    [p.text_content() for p in page.xpath("//p")],
    page.make_links_absolute("http://e.org/") or html.tostring(page),
    [list(link[1:3]) for link in page.iterlinks()],
)
print(
    objectify.fromstring("<r><n>3</n><n>4</n></r>").n[1] + 1,
    [
        (event, e.tag)
        for event, e in etree.iterparse(BytesIO(b"<a><b/></a>"), events=("start", "end"))
    ],
)
for bad in ("<a><b></a>", "", "<a>&x;</a>"):
    try:
        etree.fromstring(bad)
    except etree.XMLSyntaxError as error:
        print(error)
