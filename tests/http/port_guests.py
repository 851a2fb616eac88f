"""Servers for the sandbox: programs in plain Python that answer as a test wants, also wrongly."""

from __future__ import annotations

RAW = r"""
import socket, sys, threading, time
def serve(c):
    head = b""
    while b"\r\n\r\n" not in head:
        data = c.recv(65536)
        if not data: return
        head += data
    head, _, rest = head.partition(b"\r\n\r\n")
    open("seen", "wb").write(head)
    path = head.split()[1].decode().partition("?")[0]
    if path == "/endless-header":
        c.sendall(b"HTTP/1.1 200 OK\r\n")
        while True: c.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    elif path == "/endless-early":
        while True: c.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
    elif path == "/endless-body":
        c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        count = 0
        try:
            while True:
                c.sendall(bytes(65536)); count += 65536
                open("count", "w").write(str(count))
        except OSError: open("ended", "w").write("yes")
    elif path == "/silent":
        while c.recv(65536): pass
        open("ended", "w").write("yes")
    elif path == "/slow":
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")
        for byte in b"abcdef": time.sleep(0.2); c.sendall(bytes([byte]))
    elif path == "/first":
        c.sendall(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        open("go", "w").write("")
        while True:
            try: open("on"); break
            except OSError: time.sleep(0.02)
        c.sendall(b"second")
    elif path == "/upload":
        size = int([l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length")][0]
                   .split(b":")[1])
        got = len(rest)
        while got < size:
            data = c.recv(1 << 20)
            if not data: break
            got += len(data)
        text = b"%d" % got
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    elif path == "/early":
        c.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge")
        c.shutdown(socket.SHUT_WR)
        while c.recv(65536): pass  # closing with unread data would reset the connection
    elif path == "/chunked-request":
        while b"0\r\n\r\n" not in rest: rest += c.recv(65536)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(rest), rest))
    elif path == "/chunked":
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        c.sendall(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
    elif path == "/reset":
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
    else:
        c.sendall(open("reply", "rb").read())
    c.close()
def run(c):
    try: serve(c)
    except OSError: pass
l = socket.create_server(("127.0.0.1", 8000), backlog=100)
while True:
    c, _ = l.accept()
    threading.Thread(target=run, args=(c,), daemon=True).start()
"""

WEBSOCKET = r"""
import asyncio, base64, hashlib
async def serve(r, w):
    head = await r.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    open("seen", "wb").write(head)
    if b"/refuse" in lines[0]:
        w.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"); w.close(); return
    key = next(l.split(b":", 1)[1].strip() for l in lines
               if l.lower().startswith(b"sec-websocket-key:"))
    word = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    w.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + word + b"\r\n\r\n")
    if b"/greet" in lines[0]: w.write(b"\x81\x05hello")
    while True:
        head = await r.readexactly(2)
        size = head[1] & 127
        if size == 126: size = int.from_bytes(await r.readexactly(2), "big")
        elif size == 127: size = int.from_bytes(await r.readexactly(8), "big")
        mask = await r.readexactly(4)
        data = await r.readexactly(size)
        number = int.from_bytes(mask * (size // 4 + 1), "big") >> (8 * (4 - size % 4))
        data = (int.from_bytes(data, "big") ^ number).to_bytes(size, "big")
        if size < 126: small = bytes([size])
        elif size < 65536: small = b"\x7e" + size.to_bytes(2, "big")
        else: small = b"\x7f" + size.to_bytes(8, "big")
        w.write(head[:1] + small + data)
        await w.drain()
        if head[0] & 15 == 8: break
    w.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 8001, limit=1 << 22)
    await server.serve_forever()
asyncio.run(main())
"""
