#| packages: beautifulsoup4 jinja2 tabulate lxml
from bs4 import BeautifulSoup
from jinja2 import DictLoader, Environment, StrictUndefined, UndefinedError
from tabulate import tabulate

page = "<html><head><title>T &amp; t</title></head><body><p class='a b'>One<br>two</p><a href='/x' id=l>link</a><ul><li>1<li>2</ul></body></html>"
for parser in ("html.parser", "lxml"):
    soup = BeautifulSoup(page, parser)
    print(
        soup.title.string,
        soup.p["class"],
        soup.select("ul > li"),
        soup.find(id="l").get("href"),
        soup.get_text("|", strip=True),
        soup.p.br.next_sibling,
    )
    print(soup.prettify())
env = Environment(
    loader=DictLoader(
        {
            "base": "<{% block b %}{% endblock %}>",
            "page": "{% extends 'base' %}{% block b %}{% for i in items if i %}{{ loop.index }}:{{ i|upper|e }} {% else %}none{% endfor %}{% endblock %}",
        }
    ),
    undefined=StrictUndefined,
    autoescape=True,
)
print(
    env.get_template("page").render(items=["a<b", "", "c"]),
    env.from_string(
        "{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(1) }}{{ '%.2f'|format(2/3) }}{{ [3,1,2]|sort|join(',') }}"
    ).render(),
)
try:
    env.from_string("{{ missing }}").render()
except UndefinedError as error:
    print(error)
for style in ("plain", "github", "grid", "html", "latex"):
    print(
        tabulate(
            [["Ada", 36, 1.5], ["Alan", 41, None]], headers=["name", "age", "x"], tablefmt=style
        )
    )
