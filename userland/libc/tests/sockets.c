/* Sockets inside the sandbox: Unix and loopback TCP and UDP, streams, messages, descriptors that
 * are passed on, poll, epoll, eventfd, timerfd. Runs on Linux as well, with the same outcome. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define FAILS(call, error) CHECK((errno = 0, (call) == -1 && errno == (error)))

static void pairs(void)
{
	int s[2];
	char buffer[16];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	CHECK(fcntl(s[0], F_GETFD) == FD_CLOEXEC);
	CHECK(write(s[0], "hello", 5) == 5 && recv(s[1], buffer, 2, MSG_PEEK) == 2);
	CHECK(read(s[1], buffer, 16) == 5 && !memcmp(buffer, "hello", 5));
	FAILS(recv(s[1], buffer, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(write(s[1], "back", 4) == 4 && !shutdown(s[1], SHUT_WR));
	CHECK(read(s[0], buffer, 16) == 4 && read(s[0], buffer, 16) == 0);
	FAILS(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(write(s[0], "left", 4) == 4);
	close(s[1]); /* with unread data */
	FAILS(read(s[0], buffer, 16), ECONNRESET);
	CHECK(read(s[0], buffer, 16) == 0);
	FAILS(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	struct pollfd p = {s[0], POLLIN | POLLOUT | POLLRDHUP, 0};
	CHECK(poll(&p, 1, 0) == 1 && (p.revents & (POLLIN | POLLHUP)) == (POLLIN | POLLHUP));
	close(s[0]);

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	CHECK(send(s[0], "one", 3, 0) == 3 && send(s[0], "", 0, 0) == 0 && send(s[0], "three", 5, 0) == 5);
	CHECK(recv(s[1], buffer, 2, MSG_TRUNC) == 3 && !memcmp(buffer, "on", 2));
	CHECK(recv(s[1], buffer, 16, 0) == 0 && recv(s[1], buffer, 16, 0) == 5);
	close(s[1]);
	FAILS(send(s[0], "x", 1, MSG_NOSIGNAL), ECONNREFUSED);
	close(s[0]);
}

static void passing_descriptors(void)
{
	int s[2], p[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !pipe(p));
	union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec vector = {"!", 1};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &p[1], sizeof(int));
	CHECK(sendmsg(s[0], &message, 0) == 1);
	close(p[1]);
	char byte;
	vector.iov_base = &byte;
	memset(&control, 0, sizeof control);
	CHECK(recvmsg(s[1], &message, MSG_CMSG_CLOEXEC) == 1 && byte == '!');
	c = CMSG_FIRSTHDR(&message);
	CHECK(c && c->cmsg_type == SCM_RIGHTS);
	int fd;
	memcpy(&fd, CMSG_DATA(c), sizeof fd);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && write(fd, "x", 1) == 1);
	close(fd);
	CHECK(read(p[0], &byte, 1) == 1 && read(p[0], &byte, 1) == 0);
	close(s[0]), close(s[1]), close(p[0]);
}

static void unix_names(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "test.sock"};
	socklen_t length;
	int a = socket(AF_UNIX, SOCK_STREAM, 0), b = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink("test.sock");
	FAILS(connect(b, (void *)&name, sizeof name), ENOENT);
	CHECK(!bind(a, (void *)&name, sizeof name));
	struct stat st;
	CHECK(!stat("test.sock", &st) && S_ISSOCK(st.st_mode));
	FAILS(bind(b, (void *)&name, sizeof name), EADDRINUSE);
	FAILS(connect(b, (void *)&name, sizeof name), ECONNREFUSED);
	FAILS(open("test.sock", O_RDWR), ENXIO);
	CHECK(!listen(a, 1) && !connect(b, (void *)&name, sizeof name));
	FAILS(connect(b, (void *)&name, sizeof name), EISCONN);
	struct sockaddr_un peer;
	length = sizeof peer;
	int c = accept4(a, (void *)&peer, &length, SOCK_NONBLOCK);
	CHECK(c >= 0 && length == 2 && peer.sun_family == AF_UNIX && fcntl(c, F_GETFL) & O_NONBLOCK);
	length = sizeof peer;
	CHECK(!getpeername(b, (void *)&peer, &length) && !strcmp(peer.sun_path, "test.sock") && length == 12);
	struct ucred who;
	length = sizeof who;
	CHECK(!getsockopt(c, SOL_SOCKET, SO_PEERCRED, &who, &length) && who.pid == getpid() && who.uid == getuid());
	CHECK(write(b, "x", 1) == 1);
	close(a), close(b), close(c);
	a = socket(AF_UNIX, SOCK_STREAM, 0);
	FAILS(connect(a, (void *)&name, sizeof name), ECONNREFUSED);
	close(a);
	unlink("test.sock");

	struct sockaddr_un hidden = {.sun_family = AF_UNIX, .sun_path = "\0abstract"};
	length = 2 + 9;
	a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0);
	CHECK(!bind(a, (void *)&hidden, length));
	CHECK(sendto(b, "hi", 2, 0, (void *)&hidden, length) == 2);
	char buffer[8];
	length = sizeof peer;
	CHECK(recvfrom(a, buffer, 8, 0, (void *)&peer, &length) == 2 && length == 0);
	close(a), close(b);
}

static int listener(int family, struct sockaddr_storage *name, socklen_t *length)
{
	int s = socket(family, SOCK_STREAM, 0), on = 1;
	memset(name, 0, sizeof *name);
	name->ss_family = family;
	*length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	if (family == AF_INET) ((struct sockaddr_in *)name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else ((struct sockaddr_in6 *)name)->sin6_addr = in6addr_loopback;
	CHECK(!setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	CHECK(!bind(s, (void *)name, *length) && !listen(s, 4) && !getsockname(s, (void *)name, length));
	return s;
}

static void tcp(int family)
{
	struct sockaddr_storage name, other;
	socklen_t length, other_length = sizeof other;
	char buffer[64];
	int s = listener(family, &name, &length);
	int second = socket(family, SOCK_STREAM, 0);
	FAILS(bind(second, (void *)&name, length), EADDRINUSE);
	close(second);
	int c = socket(family, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP);
	FAILS(send(c, "x", 1, MSG_NOSIGNAL), EPIPE);
	FAILS(recv(c, buffer, 1, 0), ENOTCONN);
	FAILS(connect(c, (void *)&name, length), EINPROGRESS);
	struct pollfd p = {c, POLLOUT, 0};
	CHECK(poll(&p, 1, 1000) == 1 && p.revents == POLLOUT);
	int error;
	socklen_t error_length = sizeof error;
	CHECK(!getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &error_length) && error == 0);
	int a = accept(s, (void *)&other, &other_length);
	CHECK(a >= 0 && other_length == length);
	struct sockaddr_storage mine;
	length = sizeof mine;
	CHECK(!getsockname(c, (void *)&mine, &length) && !memcmp(&mine, &other, length));
	int on = 1;
	CHECK(!setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
	CHECK(send(a, "hello world", 11, 0) == 11 && recv(c, buffer, 5, 0) == 5);
	fcntl(c, F_SETFL, 0);
	CHECK(recv(c, buffer, 64, 0) == 6 && !memcmp(buffer, " world", 6));
	struct timeval brief = {0, 20000};
	CHECK(!setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief));
	FAILS(recv(c, buffer, 1, 0), EAGAIN);
	pid_t child = fork();
	if (!child) { /* reads 1 MiB, then answers in two parts */
		size_t total = 0;
		static char big[30000];
		while (total < 1 << 20) {
			ssize_t n = read(a, big, sizeof big);
			CHECK(n > 0);
			total += n;
		}
		CHECK(write(a, "do", 2) == 2);
		usleep(20000);
		CHECK(write(a, "ne", 2) == 2);
		_exit(0);
	}
	close(a);
	static char big[1 << 20];
	CHECK(send(c, big, sizeof big, 0) == sizeof big);
	struct timeval none = {0, 0};
	CHECK(!setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none));
	CHECK(recv(c, buffer, 4, MSG_WAITALL) == 4 && !memcmp(buffer, "done", 4));
	CHECK(recv(c, buffer, 4, 0) == 0);
	CHECK(waitpid(child, 0, 0) == child);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1); /* the first one after the end is taken */
	FAILS(send(c, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(c), close(s);
	/* Nobody listens any more. */
	length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	c = socket(family, SOCK_STREAM, 0);
	FAILS(connect(c, (void *)&name, length), ECONNREFUSED);
	close(c);
	FAILS(connect(socket(family, SOCK_STREAM, 0), (void *)&name, 1), EINVAL);
}

static void udp(void)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, from;
	socklen_t length = sizeof name;
	char buffer[8];
	int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
	FAILS(send(b, "x", 1, 0), EDESTADDRREQ);
	CHECK(!bind(a, (void *)&name, sizeof name) && !getsockname(a, (void *)&name, &length));
	CHECK(sendto(b, "ping", 4, 0, (void *)&name, sizeof name) == 4);
	length = sizeof from;
	CHECK(recvfrom(a, buffer, 8, 0, (void *)&from, &length) == 4 && length == sizeof from);
	CHECK(!connect(a, (void *)&from, length) && send(a, "pong", 4, 0) == 4 && recv(b, buffer, 8, 0) == 4);
	close(b);
	CHECK(send(a, "lost", 4, 0) == 4);
	FAILS(send(a, "lost", 4, 0), ECONNREFUSED);
	static char big[70000];
	FAILS(send(a, big, sizeof big, 0), EMSGSIZE);
	close(a);
}

static void both_families(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6}, peer;
	socklen_t length = sizeof any;
	int s = socket(AF_INET6, SOCK_STREAM, 0), off = 0;
	CHECK(!setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off));
	CHECK(!bind(s, (void *)&any, sizeof any) && !listen(s, 4) && !getsockname(s, (void *)&any, &length));
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = any.sin6_port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int c = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(c, (void *)&four, sizeof four));
	length = sizeof peer;
	int a = accept(s, (void *)&peer, &length);
	CHECK(a >= 0 && IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr));
	close(a), close(c), close(s);
}

static void epoll_and_friends(void)
{
	int e = epoll_create1(EPOLL_CLOEXEC), s[2];
	struct epoll_event event = {EPOLLIN, {.u64 = 0x123456789abcdefULL}}, got[4];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK(!epoll_ctl(e, EPOLL_CTL_ADD, s[0], &event));
	FAILS(epoll_ctl(e, EPOLL_CTL_ADD, s[0], &event), EEXIST);
	FAILS(epoll_ctl(e, EPOLL_CTL_ADD, e, &event), EINVAL);
	CHECK(epoll_wait(e, got, 4, 0) == 0 && write(s[1], "x", 1) == 1);
	CHECK(epoll_wait(e, got, 4, -1) == 1 && got[0].events == EPOLLIN && got[0].data.u64 == 0x123456789abcdefULL);
	CHECK(epoll_wait(e, got, 4, 0) == 1); /* level-triggered */
	event.events = EPOLLIN | EPOLLET;
	CHECK(!epoll_ctl(e, EPOLL_CTL_MOD, s[0], &event) && epoll_wait(e, got, 4, 0) == 1);
	CHECK(epoll_wait(e, got, 4, 0) == 0 && write(s[1], "y", 1) == 1 && epoll_wait(e, got, 4, 0) == 1);
	event.events = EPOLLIN | EPOLLONESHOT;
	CHECK(!epoll_ctl(e, EPOLL_CTL_MOD, s[0], &event) && epoll_wait(e, got, 4, 0) == 1);
	CHECK(write(s[1], "z", 1) == 1 && epoll_wait(e, got, 4, 0) == 0);
	CHECK(!epoll_ctl(e, EPOLL_CTL_DEL, s[0], 0));
	FAILS(epoll_ctl(e, EPOLL_CTL_DEL, s[0], 0), ENOENT);
	event.events = EPOLLIN;
	CHECK(!epoll_ctl(e, EPOLL_CTL_ADD, s[0], &event));
	close(s[0]); /* is watched no more */
	CHECK(epoll_wait(e, got, 4, 0) == 0);
	close(s[1]);

	int v = eventfd(3, EFD_NONBLOCK);
	uint64_t value = 4;
	CHECK(!epoll_ctl(e, EPOLL_CTL_ADD, v, &event) && epoll_wait(e, got, 4, 0) == 1);
	CHECK(write(v, &value, 8) == 8 && read(v, &value, 8) == 8 && value == 7);
	FAILS(read(v, &value, 8), EAGAIN);
	CHECK(epoll_wait(e, got, 4, 0) == 0);
	close(v);

	int t = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec when = {{0, 10000000}, {0, 10000000}};
	CHECK(!timerfd_settime(t, 0, &when, 0) && !epoll_ctl(e, EPOLL_CTL_ADD, t, &event));
	CHECK(epoll_wait(e, got, 4, 2000) == 1 && read(t, &value, 8) == 8 && value >= 1);
	usleep(35000);
	CHECK(read(t, &value, 8) == 8 && value >= 2);
	memset(&when, 0, sizeof when);
	CHECK(!timerfd_settime(t, 0, &when, 0) && epoll_wait(e, got, 4, 30) == 0);
	close(t), close(e);
}

static void names(void)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	CHECK(!getaddrinfo("localhost", "80", &hints, &found));
	freeaddrinfo(found);
	hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
	CHECK(!getaddrinfo(0, "8080", &hints, &found));
	freeaddrinfo(found);
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	pairs();
	passing_descriptors();
	unix_names();
	tcp(AF_INET);
	tcp(AF_INET6);
	udp();
	both_families();
	epoll_and_friends();
	names();
}
