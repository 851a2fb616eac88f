#| packages: requests httpx click rich tqdm python-dateutil pytz
import datetime, http.server, io, json, threading
import click, dateutil.parser, dateutil.relativedelta, dateutil.rrule, httpx, pytz, requests, rich.console, rich.table, tqdm
from click.testing import CliRunner


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/ok")
            self.end_headers()
            return
        body = json.dumps({"path": self.path, "agent": self.headers["X-Me"]}).encode()
        self.send_response(404 if self.path == "/no" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}"
r = requests.get(base + "/ok", params={"q": "ä b"}, headers={"X-Me": "1"}, timeout=20)
print(
    r.status_code,
    r.json(),
    r.headers["content-type"],
    requests.post(base, json={"a": 1}, timeout=20).text,
    requests.get(base + "/moved", timeout=20).history,
)
try:
    requests.get(base + "/no", timeout=20).raise_for_status()
except requests.HTTPError as error:
    print(str(error).replace(base, "BASE"))
with httpx.Client(base_url=base) as client:
    print(
        client.get("/ok").json(),
        client.post("/", content=b"xyz").status_code,
        client.get("/moved").is_redirect,
    )
server.shutdown()


@click.command()
@click.option("--count", default=1, show_default=True, help="Number of greetings.")
@click.argument("name")
def hello(count, name):
    for _ in range(count):
        click.echo(f"Hello {name}!")


print(
    CliRunner().invoke(hello, ["--count", "2", "Ada"]).output,
    CliRunner().invoke(hello, ["--help"]).output,
    CliRunner().invoke(hello, []).exit_code,
)
out = io.StringIO()
console = rich.console.Console(file=out, width=60)
table = rich.table.Table(title="Films")
table.add_column("Year", justify="right")
table.add_column("Title")
table.add_row("1977", "[bold]Star[/] Wars")
console.print(table, {"a": [1, 2]})
print(out.getvalue())
print(
    sum(tqdm.tqdm(range(5), file=io.StringIO())),
    dateutil.parser.parse("Thu Sep 25 2003 10:36 am"),
    datetime.date(2024, 1, 31) + dateutil.relativedelta.relativedelta(months=1),
)
print(
    [
        d.date().isoformat()
        for d in dateutil.rrule.rrule(
            dateutil.rrule.MONTHLY, count=3, dtstart=datetime.datetime(2024, 1, 15)
        )
    ],
    pytz.timezone("Europe/Rome").localize(datetime.datetime(2024, 7, 1)).utcoffset(),
)
