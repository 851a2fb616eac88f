"""Sockets by hand: TCP echo with selectors, UDP, pairs, socketserver, poll, timeouts."""

import select
import selectors
import socket
import socketserver
import threading

selector = selectors.DefaultSelector()
listener = socket.create_server(("127.0.0.1", 0))
listener.setblocking(False)
selector.register(listener, selectors.EVENT_READ)
client = socket.create_connection(listener.getsockname())
client.sendall(b"hello")
echoed = b""
while len(echoed) < 5:
    for key, _ in selector.select(1):
        if key.fileobj is listener:
            connection, _ = listener.accept()
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ)
        else:
            key.fileobj.sendall(key.fileobj.recv(100).upper())
            echoed += client.recv(100)
print(echoed, type(selector).__name__)
connection.close()
print(client.recv(10))
a, b = socket.socketpair()
a.settimeout(0.02)
try:
    a.recv(1)
except TimeoutError as error:
    print(repr(error))
print(select.select([a], [b], [], 0)[1] == [b])
poll = select.poll()
poll.register(b, select.POLLIN)
a.send(b"x")
print(poll.poll(100)[0][1] == select.POLLIN, b.recv(1))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two:
    one.bind(("127.0.0.1", 0))
    two.sendto(b"datagram", one.getsockname())
    print(one.recvfrom(100)[0])
left, right = socket.socketpair()
with open("file", "w+") as file:
    file.write("by descriptor")
    file.flush()
    socket.send_fds(left, [b"!"], [file.fileno()])
    message, fds, _, _ = socket.recv_fds(right, 10, 1)
    print(message, open(fds[0]).seek(0))


class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline().upper())


with socketserver.TCPServer(("127.0.0.1", 0), Upper) as server:
    threading.Thread(target=server.handle_request).start()
    with socket.create_connection(server.server_address) as client, client.makefile("rw") as stream:
        stream.write("line\n")
        stream.flush()
        print(stream.readline())
print(socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0][4], socket.gethostbyname("localhost"))
print(socket.inet_pton(socket.AF_INET6, "::1").hex(), socket.has_ipv6)
