"""An HTTP server on a thread, asked by urllib and http.client over loopback."""

import http.client
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        if url.path == "/missing":
            return self.send_error(404)
        body = json.dumps({"path": url.path, "query": urllib.parse.parse_qs(url.query)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(data[::-1])

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
thread = threading.Thread(target=server.serve_forever)
thread.start()
base = f"http://127.0.0.1:{server.server_port}"
with urllib.request.urlopen(f"{base}/a%20b?x=1&x=2&y=%C3%A9") as answer:
    print(answer.status, answer.headers["Content-Type"], json.load(answer))
with urllib.request.urlopen(urllib.request.Request(base, b"abc", method="POST")) as answer:
    print(answer.status, answer.read())
try:
    urllib.request.urlopen(f"{base}/missing")
except urllib.error.HTTPError as error:
    print(error.code, error.reason)
connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
connection.request("GET", "/again")
print(connection.getresponse().read())
connection.close()
server.shutdown()
thread.join()
server.server_close()
try:
    urllib.request.urlopen(base, timeout=2)
except urllib.error.URLError as error:
    print(type(error.reason).__name__)
print(urllib.parse.quote("a b/ü?"), urllib.parse.urljoin("http://h/a/b", "../c"), urllib.parse.urlencode({"k": [1, 2]}, doseq=True))
