"""The directories, devices and /etc files that every sandbox starts with.

Owns `standard_tree`. Rules: nothing here names a program of the user space; recipes add their own
files. The time zone is UTC: there is no /etc/localtime.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.vfs.image import ImageBuilder

USER: Final = 1000
"""uid and gid of `user`, which runs commands by default."""
TTY_GROUP: Final = 5

_DIRECTORIES: Final = (
    b"/dev/pts", b"/dev/shm", b"/etc/profile.d", b"/home", b"/mnt", b"/proc", b"/root",
    b"/run", b"/tmp", b"/usr/bin", b"/usr/lib", b"/usr/share", b"/var/cache", b"/var/lib",
    b"/var/log", b"/var/tmp",
)  # fmt: skip

_OF_USER: Final = (
    b"/home/user", b"/opt", b"/srv", b"/usr/local", b"/usr/local/bin", b"/usr/local/etc",
    b"/usr/local/include", b"/usr/local/lib", b"/usr/local/share", b"/usr/local/src",
)  # fmt: skip

_DEVICES: Final = (
    (b"/dev/null", 1, 3, 0o666, 0),
    (b"/dev/zero", 1, 5, 0o666, 0),
    (b"/dev/full", 1, 7, 0o666, 0),
    (b"/dev/random", 1, 8, 0o666, 0),
    (b"/dev/urandom", 1, 9, 0o666, 0),
    (b"/dev/tty", 5, 0, 0o666, TTY_GROUP),
    (b"/dev/console", 5, 1, 0o600, TTY_GROUP),
    (b"/dev/ptmx", 5, 2, 0o666, TTY_GROUP),
)

_LINKS: Final = (
    (b"/bin", b"usr/bin"),
    (b"/sbin", b"usr/bin"),
    (b"/lib", b"usr/lib"),
    (b"/usr/sbin", b"bin"),
    (b"/usr/local/sbin", b"bin"),
    (b"/var/run", b"/run"),
    (b"/dev/fd", b"/proc/self/fd"),
    (b"/dev/stdin", b"/proc/self/fd/0"),
    (b"/dev/stdout", b"/proc/self/fd/1"),
    (b"/dev/stderr", b"/proc/self/fd/2"),
    (b"/etc/mtab", b"/proc/mounts"),
)

# The common capabilities of current terminals (ECMA-48), for line editing in the shell.
_TERMCAP = b":\\\n\t:".join(
    (
        rb"xterm|xterm-256color|linux|screen|screen-256color|tmux|tmux-256color|vt100|ansi",
        rb"am:km:mi:ms:xn:co#80:li#24:it#8:bl=^G:cr=^M:do=^J:le=^H:ta=^I",
        rb"up=\E[A:nd=\E[C:cm=\E[%i%d;%dH:ho=\E[H:cl=\E[H\E[2J:cd=\E[J:ce=\E[K",
        rb"ic=\E[@:dc=\E[P:al=\E[L:dl=\E[M:im=\E[4h:ei=\E[4l",
        rb"md=\E[1m:mr=\E[7m:me=\E[m:us=\E[4m:ue=\E[24m:so=\E[7m:se=\E[27m",
        rb"ks=\E[?1h\E=:ke=\E[?1l\E>:ku=\EOA:kd=\EOB:kr=\EOC:kl=\EOD:kh=\EOH:@7=\EOF",
        b"\n",
    )
)

_SERVICES = b"".join(
    [
        b"%s\t%d/%s\n" % (name, port, protocol)
        for name, port, protocols in (
            (b"echo", 7, b"tcp udp"),
            (b"ftp", 21, b"tcp"),
            (b"ssh", 22, b"tcp"),
            (b"telnet", 23, b"tcp"),
            (b"smtp", 25, b"tcp"),
            (b"domain", 53, b"tcp udp"),
            (b"http", 80, b"tcp"),
            (b"pop3", 110, b"tcp"),
            (b"ntp", 123, b"udp"),
            (b"imap2", 143, b"tcp"),
            (b"ldap", 389, b"tcp udp"),
            (b"https", 443, b"tcp udp"),
            (b"submission", 587, b"tcp"),
            (b"imaps", 993, b"tcp"),
            (b"pop3s", 995, b"tcp"),
            (b"mysql", 3306, b"tcp"),
            (b"postgresql", 5432, b"tcp"),
            (b"http-alt", 8080, b"tcp udp"),
        )
        for protocol in protocols.split()
    ]
)

_FILES = {
    b"/etc/passwd": b"""\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
user:x:1000:1000:User:/home/user:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
""",
    b"/etc/group": b"""\
root:x:0:
daemon:x:1:
bin:x:2:
tty:x:5:
users:x:100:user
user:x:1000:
nogroup:x:65534:
""",
    b"/etc/hosts": b"127.0.0.1\tlocalhost\n127.0.1.1\tsandbox\n::1\tlocalhost ip6-localhost\n",
    b"/etc/hostname": b"sandbox\n",
    b"/etc/timezone": b"Etc/UTC\n",
    b"/etc/resolv.conf": b"nameserver 198.18.0.1\noptions timeout:10 attempts:1\n",
    b"/etc/services": _SERVICES,
    b"/etc/protocols": b"ip\t0\tIP\nicmp\t1\tICMP\ntcp\t6\tTCP\nudp\t17\tUDP\nipv6\t41\tIPv6\n",
    b"/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
    b"/etc/os-release": b"""\
ID=wasmsand
NAME="wasmsand"
PRETTY_NAME="wasmsand (programs compiled to WebAssembly)"
""",
    b"/etc/profile": b"""\
export PATH=/usr/local/bin:/usr/bin:/bin
for script in /etc/profile.d/*.sh; do
    if [ -r "$script" ]; then . "$script"; fi
done
unset script
""",
    b"/etc/termcap": _TERMCAP,
    b"/etc/shells": b"/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n",
}


def standard_tree(builder: ImageBuilder) -> None:
    """Add what every sandbox has, before any program."""
    for path in _DIRECTORIES:
        builder.add_dir(path)
    for path in (b"/tmp", b"/var/tmp", b"/dev/shm"):
        builder.add_dir(path, 0o1777)
    builder.add_dir(b"/root", 0o700)
    # What users install for themselves, without sudo.
    for path in _OF_USER:
        builder.add_dir(path, 0o755, USER, USER)
    builder.add_dir(b"/proc", 0o555)
    for path, major, minor, mode, gid in _DEVICES:
        builder.add_device(path, major, minor, mode, 0, gid)
    for path, target in _LINKS:
        builder.add_symlink(path, target)
    for path, content in _FILES.items():
        builder.add_file(path, content)
