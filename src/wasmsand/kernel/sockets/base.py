"""What all sockets share.

Owns `Socket`: family, addresses, options, the pending error. Rules: a socket has one wait queue for
its whole life, woken at every change, so that epoll can watch it. An error not caused by a call
(such as a reset) is pending until one call, or SO_ERROR, reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_NONBLOCK, O_RDWR, S_IFSOCK
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import SOCKET_OPTION_COST
from wasmsand.kernel.sockets import options
from wasmsand.kernel.sockets.address import AF_INET6, AF_UNIX, Address, UnixAddress, any_address
from wasmsand.kernel.vfs import Node, Stat
from wasmsand.kernel.wait import WaitQueue, WouldBlock

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.network import Network


class Owner(NamedTuple):
    """The process that created a socket, or last called connect or listen on it (SO_PEERCRED)."""

    pid: int
    uid: int
    gid: int


NOBODY = Owner(0, 0xFFFF_FFFF, 0xFFFF_FFFF)


class Socket(OpenFile):
    """One socket."""

    __slots__ = (
        "_options",
        "_stat",
        "bound_node",
        "changed",
        "error",
        "family",
        "linger",
        "local",
        "network",
        "owner",
        "protocol",
        "receive_timeout_ns",
        "remote",
        "send_timeout_ns",
        "shares",
        "shut_read",
        "shut_write",
    )

    kind: ClassVar[str] = "socket"
    type_number: ClassVar[int]

    def __init__(
        self,
        network: Network,
        family: int,
        protocol: int,
        owner: Owner,
        flags: int,
    ) -> None:
        super().__init__(O_RDWR | flags & O_NONBLOCK)
        self.network = network
        self.family = family
        self.protocol = protocol
        self.owner = owner
        self.local: Address | None = None
        self.remote: Address | None = None
        """The address of the other end, if connected."""
        self.bound_node: Node | None = None
        self.error: Errno | None = None
        self.shut_read = False
        self.shut_write = False
        self.linger = (0, 0)
        """SO_LINGER: (on, seconds). On with 0 seconds turns a close into a reset."""
        self.receive_timeout_ns = 0
        self.send_timeout_ns = 0
        self.changed = WaitQueue()
        self.shares: tuple[int, tuple[bytes, bool, int, int, int, int]] | None = None
        """For an accepted connection: its port, and the group under which `Ports` stores it."""
        self._options: dict[tuple[int, int], int] = {}
        self._stat = network.anonymous.new(S_IFSOCK | 0o777, owner.uid, owner.gid)

    @property
    def is_unix(self) -> bool:
        """Whether it is of the family AF_UNIX."""
        return self.family == AF_UNIX

    @property
    def listening(self) -> bool:
        """Whether listen(2) was called."""
        return False

    def name(self) -> Address:
        """The result of getsockname."""
        if self.local is not None:
            return self.local
        return UnixAddress() if self.is_unix else any_address(self.family)

    def option(self, option: tuple[int, int]) -> int:
        """The value of an integer option; ENOPROTOOPT if there is no such option."""
        value = self._options.get(option)
        if value is None:
            value = options.DEFAULTS.get(option)
            if value is None:
                raise KernelError(Errno.ENOPROTOOPT)
        return value

    def shown_option(self, option: tuple[int, int]) -> int:
        """The result of getsockopt(2) for an integer option. Reading SO_ERROR clears it.
        ENOPROTOOPT, EOPNOTSUPP."""
        if option == options.SO_ERROR:
            return int(self.take_error() or 0)
        if option == options.SO_TYPE:
            return self.type_number
        if option == options.SO_DOMAIN:
            return self.family
        if option == options.SO_PROTOCOL:
            return self.protocol
        if option == options.SO_ACCEPTCONN:
            return int(self.listening)
        self._require_level(option[0])
        return self.option(option)

    def set_option(self, option: tuple[int, int], value: int) -> None:
        """Set an integer option. ENOPROTOOPT, EOPNOTSUPP; EINVAL if the option must be set before
        bind."""
        if option == options.IPV6_V6ONLY and self.local is not None:
            raise KernelError(Errno.EINVAL)
        self._require_level(option[0])
        if option not in options.DEFAULTS:
            raise KernelError(Errno.ENOPROTOOPT)
        if option not in self._options:
            self.charge(SOCKET_OPTION_COST, Errno.ENOBUFS)
        self._options[option] = options.settled(option, value)

    def _require_level(self, level: int) -> None:
        """EOPNOTSUPP or ENOPROTOOPT if the socket's protocol does not have this option level."""
        if level == options.SOL_SOCKET:
            return
        if self.is_unix or (level == options.IPPROTO_TCP and self.protocol != options.IPPROTO_TCP):
            raise KernelError(Errno.EOPNOTSUPP)
        if level == options.IPPROTO_IPV6 and self.family != AF_INET6:
            raise KernelError(Errno.ENOPROTOOPT)

    def inherit_options(self, listener: Socket) -> None:
        """Copy the options of the listener that this socket was accepted from."""
        self.charge(SOCKET_OPTION_COST * len(listener._options), Errno.ENOBUFS)
        self._options = dict(listener._options)

    def enter(self, ledger: Ledger, errno: Errno = Errno.ENOMEM) -> None:
        """Charge the socket to the ledger; ENFILE if the sandbox has too many sockets."""
        self.network.require_socket()
        super().enter(ledger, errno)
        self.network.sockets += 1

    def dispose(self) -> None:
        """Close the socket."""
        if self.ledger is not None:
            self.network.sockets -= 1
        super().dispose()

    def fail_with(self, error: Errno) -> None:
        """Make `error` pending: the next call reports it."""
        self.error = error
        self.changed.wake()

    def take_error(self) -> Errno | None:
        """Remove and return the pending error."""
        error, self.error = self.error, None
        return error

    def raise_error(self) -> None:
        """Raise the pending error, if there is one."""
        if self.error is not None:
            error, self.error = self.error, None
            raise KernelError(error)

    def block(self, nonblocking: bool, *queues: WaitQueue) -> Exception:
        """The exception for a call that cannot finish now: EAGAIN or `WouldBlock`."""
        if nonblocking or self.flags & O_NONBLOCK:
            return KernelError(Errno.EAGAIN)
        return WouldBlock(queues or (self.changed,))

    def listen(self, backlog: int) -> None:
        """listen(2)."""
        raise KernelError(Errno.EOPNOTSUPP)

    def accept(self, nonblocking: bool) -> Socket:
        """Take the next connection (accept(2))."""
        raise KernelError(Errno.EOPNOTSUPP)

    def connect(self, address: Address, target: Socket | None) -> None:
        """connect(2). `target` is the socket bound to a Unix address (see `naming.find`)."""
        raise NotImplementedError

    def shutdown(self, read: bool, write: bool) -> None:
        """shutdown(2)."""
        raise NotImplementedError

    def readable_bytes(self) -> int:
        """The result of FIONREAD."""
        raise NotImplementedError

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed,)

    def stat(self) -> Stat:
        return self._stat
