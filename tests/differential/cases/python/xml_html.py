"""XML and HTML: ElementTree, minidom, SAX, html.parser, escaping."""

import html
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from xml.dom import minidom
from xml.sax.saxutils import escape, quoteattr

source = """<?xml version="1.0"?>
<catalog xmlns:x="urn:x"><book id="1" x:lang="en"><title>One &amp; Two</title><price>9.5</price></book>
<book id="2"><title>Ünïcode</title><price>20</price><!-- note --></book></catalog>"""
root = ET.fromstring(source)
for book in root.findall("book"):
    print(book.get("id"), book.findtext("title"), float(book.find("price").text), dict(book.attrib))
ET.SubElement(root, "book", id="3").text = "<three>"
ET.indent(root)
print(ET.tostring(root, encoding="unicode"))
print([e.tag for e in root.iter()][:4], root.find(".//book[@id='2']/title").text)
print(minidom.parseString("<a><b c='d'/></a>").toprettyxml(indent=" "))
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as error:
    print(error)


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.text = [], []

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.links.append(dict(attributes).get("href"))

    def handle_data(self, data):
        self.text.append(data.strip())


parser = Links()
parser.feed("<p>See <a href='/one'>one</a> &mdash; <a href=\"/two?a=1&amp;b=2\">two</a><br></p>")
print(parser.links, parser.text)
print(html.escape("<a href='x'>"), html.unescape("&lt;&eacute;&#x41;"), escape("a<b"), quoteattr('say "hi"'))
