"""/proc of a small kernel made by the test: names, links, formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.kernel.vfs.world import OTHER, USER, World, fails, image
from wasmsand.kernel import flags
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs import (
    ROOT,
    FdInfo,
    ImageBuilder,
    Node,
    ProcessFacts,
    ProcFs,
    Stat,
    SystemInfo,
    standard_tree,
)

PIPE_STAT = Stat(9, 77, flags.S_IFIFO | 0o600, 1, 1000, 1000, 0, 0, 4096, 0, 0, 0, 0, 0)


class Machine:
    """Two processes: init (1) and a shell of the user (42) with a file and a pipe open."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.caller = 42
        self.file = world.write(b"/home/user/data", b"hello")
        world.ns.retain(self.file)
        world.write(b"/usr/bin/bash", b"\0asm", 0o755)
        home = world.find(b"/home/user")
        self.processes = {
            1: ProcessFacts(pid=1, ppid=0, pgid=1, sid=1, name=b"init"),
            42: ProcessFacts(
                pid=42,
                ppid=1,
                pgid=42,
                sid=42,
                name=b"a (strange) name",
                state="R",
                cmdline=[b"bash", b"-c", b"echo hi"],
                environ=[b"HOME=/home/user", b"A=b c"],
                exe_path=b"/usr/bin/bash",
                cwd=home,
                uids=(1000, 1000, 1000),
                gids=(1000, 1000, 1000),
                groups=[1000, 2000],
                user_time_ns=1_230_000_000,
                memory_bytes=8 << 20,
                signals_caught=0x4000,
                rlimits={7: (1024, 4096)},
            ),
        }
        self.open = {
            0: FdInfo(b"pipe:[77]", None, flags.O_RDONLY),
            3: FdInfo(b"/home/user/data", self.file, flags.O_RDWR, position=5),
        }

    def self_pid(self) -> int:
        return self.caller

    def self_tid(self) -> int:
        return self.caller

    def thread_info(self, tid: int) -> ProcessFacts | None:
        return self.processes.get(tid)

    def pids(self) -> Sequence[int]:
        return sorted(self.processes)

    def process_info(self, pid: int) -> ProcessFacts | None:
        return self.processes.get(pid)

    def fds(self, pid: int) -> Sequence[int]:
        return sorted(self.open) if pid == 42 else []

    def fd_info(self, pid: int, fd: int) -> FdInfo | None:
        return self.open.get(fd) if pid == 42 else None

    def fd_stat(self, pid: int, fd: int) -> Stat | None:
        return PIPE_STAT if (pid, fd) == (42, 0) and 0 in self.open else None

    def system_info(self) -> SystemInfo:
        return SystemInfo(
            memory_total_bytes=1 << 30,
            memory_free_bytes=3 << 28,
            cpu_count=2,
            uptime_ns=100 * 10**9,
            boot_time_s=1_700_000_000,
            processes=2,
            last_pid=42,
        )

    def random_uuid(self) -> bytes:
        return b"c0ffee00-0000-4000-8000-000000000001"


def tree(builder: ImageBuilder) -> None:
    standard_tree(builder)


@pytest.fixture
def world() -> World:
    return World(image(tree))


@pytest.fixture
def machine(world: World) -> Machine:
    machine = Machine(world)
    world.ns.mount(world.find(b"/proc"), ProcFs(machine, world.ns), source=b"proc")
    return machine


def text(world: World, path: bytes) -> bytes:
    return world.ns.read(world.find(path), 0, 1 << 20)


def test_the_root_lists_files_and_processes(world: World, machine: Machine) -> None:
    names = world.names(b"/proc")
    assert names[-2:] == [b"1", b"42"]
    assert {b"self", b"meminfo", b"cpuinfo", b"stat", b"uptime", b"mounts", b"sys"} < set(names)
    for name in names:
        assert world.ns.stat(world.find(b"/proc/" + name, follow=False))


def test_listing_in_steps_survives_the_end_of_a_process(world: World, machine: Machine) -> None:
    node, cookie, names = world.find(b"/proc"), 0, []
    while entries := world.ns.readdir(node, cookie, 1):
        names.append(entries[0].name)
        cookie = entries[0].cookie
        machine.processes.pop(1, None)
    assert b"42" in names
    assert len(names) == len(set(names))


def test_self_is_the_caller(world: World, machine: Machine) -> None:
    assert world.ns.readlink(world.find(b"/proc/self", follow=False)) == b"42"
    assert world.find(b"/proc/self") == world.find(b"/proc/42")
    assert world.find(b"/proc/thread-self/stat") == world.find(b"/proc/42/task/42/stat")
    machine.caller = 1
    assert world.find(b"/proc/self") == world.find(b"/proc/1")
    machine.caller = 0
    with fails(Errno.ENOENT):
        world.find(b"/proc/self")


@pytest.mark.parametrize("name", [b"7", b"042", b"-1", b"1x", b"9" * 30, b"self2"])
def test_a_name_that_is_not_a_process_does_not_exist(
    world: World, machine: Machine, name: bytes
) -> None:
    with fails(Errno.ENOENT):
        world.find(b"/proc/" + name)


def test_every_listed_file_can_be_read(world: World, machine: Machine) -> None:
    seen = 0

    def visit(node: Node) -> None:
        nonlocal seen
        for entry in world.ns.readdir(node, 0, 1000)[2:]:
            child = world.ns.resolve(ROOT, node, entry.name, follow=False)
            assert (child.ino, world.ns.stat(child).mode & flags.S_IFMT) == (entry.ino, entry.type)
            if entry.type == flags.S_IFDIR:
                assert world.ns.resolve(ROOT, child, b"..") == node
                visit(child)
            elif entry.type == flags.S_IFREG:
                world.ns.read(child, 0, 1 << 20)
                assert world.ns.path_of(child).endswith(b"/" + entry.name)
                seen += 1
            elif world.ns.path_of(node) != b"/proc/1":
                assert world.ns.readlink(child)

    visit(world.find(b"/proc"))
    assert seen > 50


def test_stat_has_52_fields_that_survive_a_strange_name(world: World, machine: Machine) -> None:
    line = text(world, b"/proc/42/stat")
    head, _, tail = line.rpartition(b")")
    assert head == b"42 (a (strange) name"
    fields = tail.split()
    assert len(fields) == 50
    assert fields[:4] == [b"R", b"1", b"42", b"42"]
    assert fields[11] == b"123"
    assert (fields[20], fields[21]) == (b"8388608", b"2048")
    assert (fields[31], fields[35]) == (b"16384", b"17")


def test_status_can_be_parsed_line_by_line(world: World, machine: Machine) -> None:
    lines = dict(
        line.split(":\t", 1) for line in text(world, b"/proc/42/status").decode().splitlines()
    )
    assert lines["Name"] == "a (strange) name"
    assert lines["State"] == "R (running)"
    assert lines["Uid"] == "1000\t1000\t1000\t1000"
    assert lines["Groups"] == "1000 2000 "
    assert lines["VmRSS"].split() == ["8192", "kB"]
    assert lines["SigCgt"] == "0000000000004000"
    assert lines["Umask"] == "0022"


def test_arguments_and_environment_end_in_nul(world: World, machine: Machine) -> None:
    assert text(world, b"/proc/42/cmdline") == b"bash\0-c\0echo hi\0"
    assert text(world, b"/proc/42/environ") == b"HOME=/home/user\0A=b c\0"
    assert text(world, b"/proc/42/comm") == b"a (strange) name\n"


def test_limits_show_numbers_and_unlimited(world: World, machine: Machine) -> None:
    lines = text(world, b"/proc/42/limits").decode().splitlines()
    assert lines[0].split() == ["Limit", "Soft", "Limit", "Hard", "Limit", "Units"]
    assert [line.split()[3:] for line in lines if line.startswith("Max open files")] == [
        ["1024", "4096", "files"]
    ]
    assert lines[1].split()[3:] == ["unlimited", "unlimited", "seconds"]


def test_system_files_have_the_formats_of_linux(world: World, machine: Machine) -> None:
    memory = text(world, b"/proc/meminfo").decode()
    assert re.search(r"^MemTotal: +1048576 kB$", memory, re.MULTILINE)
    assert re.search(r"^MemAvailable: +786432 kB$", memory, re.MULTILINE)
    assert text(world, b"/proc/uptime") == b"100.00 200.00\n"
    assert text(world, b"/proc/loadavg") == b"0.00 0.00 0.00 1/2 42\n"
    assert text(world, b"/proc/cpuinfo").count(b"processor\t:") == 2
    processors = text(world, b"/proc/stat").splitlines()
    assert processors[0] == b"cpu  0 0 0 20000 0 0 0 0 0 0"
    assert b"btime 1700000000" in processors
    assert text(world, b"/proc/version").startswith(b"Linux version 6.1.0-wasmsand ")
    assert text(world, b"/proc/sys/kernel/ostype") == b"Linux\n"
    assert text(world, b"/proc/sys/kernel/random/uuid") == machine.random_uuid() + b"\n"
    assert text(world, b"/proc/mounts") == world.ns.mounts_text()
    assert b"proc /proc proc rw,relatime 0 0\n" in text(world, b"/etc/mtab")
    assert text(world, b"/proc/self/mountinfo") == world.ns.mountinfo_text()


def test_a_reader_in_small_steps_sees_one_moment(world: World, machine: Machine) -> None:
    node = world.find(b"/proc/42/comm")
    first = world.ns.read(node, 0, 4)
    machine.processes[42] = replace(machine.processes[42], name=b"another")
    assert first + world.ns.read(node, 4, 100) == b"a (strange) name\n"
    assert world.ns.read(node, 0, 100) == b"another\n"


def test_a_descriptor_link_leads_to_the_open_file_itself(world: World, machine: Machine) -> None:
    assert world.find(b"/proc/self/fd/3") == machine.file
    assert world.find(b"/dev/fd/3") == machine.file
    assert world.ns.readlink(world.find(b"/proc/42/fd/3", follow=False)) == b"/home/user/data"
    world.unlink(b"/home/user/data")
    node = world.open(b"/dev/fd/3", flags.O_RDWR | flags.O_CREAT)
    assert (node, world.ns.read(node, 0, 10)) == (machine.file, b"hello")
    assert world.ns.fd_reference(node) is None


def test_a_link_to_an_anonymous_object_names_the_descriptor(world: World, machine: Machine) -> None:
    node = world.open(b"/dev/stdin", flags.O_RDONLY, cred=USER)
    assert world.ns.fd_reference(node) == (42, 0)
    assert world.ns.stat(node) == PIPE_STAT
    assert world.ns.readlink(world.find(b"/proc/self/fd/0", follow=False)) == b"pipe:[77]"
    with fails(Errno.ENOTDIR):
        world.find(b"/dev/stdin/x")
    del machine.open[0]
    with fails(Errno.ENOENT):
        world.ns.stat(node)
    with fails(Errno.ENOENT):
        world.find(b"/dev/stdin")


def test_descriptors_are_listed_with_what_they_were_opened_for(
    world: World, machine: Machine
) -> None:
    assert world.names(b"/proc/self/fd") == [b"0", b"3"]
    for name, mode in ((b"0", 0o500), (b"3", 0o700)):
        stat = world.ns.stat(world.find(b"/proc/self/fd/" + name, follow=False))
        assert stat.mode == flags.S_IFLNK | mode
    assert text(world, b"/proc/self/fdinfo/3") == b"pos:\t5\nflags:\t02\nmnt_id:\t1\n"


def test_links_lead_to_directories_and_programs(world: World, machine: Machine) -> None:
    assert world.find(b"/proc/self/cwd") == world.find(b"/home/user")
    assert world.find(b"/proc/self/cwd/../..") == world.root
    assert world.find(b"/proc/self/root") == world.root
    assert world.find(b"/proc/self/exe") == world.find(b"/usr/bin/bash")
    for name, target in ((b"cwd", b"/home/user"), (b"exe", b"/usr/bin/bash"), (b"root", b"/")):
        assert world.ns.readlink(world.find(b"/proc/42/" + name, follow=False)) == target
    with fails(Errno.ENOENT):
        world.find(b"/proc/1/exe")


def test_a_process_is_private_to_its_user(world: World, machine: Machine) -> None:
    assert world.find(b"/proc/42/cwd", USER)
    for path in (b"/proc/42/cwd", b"/proc/42/exe", b"/proc/42/fd/3"):
        with fails(Errno.EACCES):
            world.find(path, OTHER)
    with fails(Errno.EACCES):
        world.open(b"/proc/42/environ", flags.O_RDONLY, cred=OTHER)
    world.open(b"/proc/42/status", flags.O_RDONLY, cred=OTHER)


def test_a_process_that_ended_leaves_no_entry(world: World, machine: Machine) -> None:
    directory, file = world.find(b"/proc/42"), world.find(b"/proc/42/stat")
    del machine.processes[42]
    with fails(Errno.ENOENT):
        world.ns.stat(directory)
    with fails(Errno.ESRCH):
        world.ns.read(file, 0, 10)


def test_nothing_can_be_made_or_removed_in_proc(world: World, machine: Machine) -> None:
    with fails(Errno.EACCES):
        world.mkdir(b"/proc/new", cred=USER)
    with fails(Errno.EACCES):
        world.unlink(b"/proc/meminfo", USER)
    with fails(Errno.EROFS):
        world.mkdir(b"/proc/new")
    with fails(Errno.EACCES):
        world.open(b"/proc/meminfo", flags.O_WRONLY, cred=USER)
    with fails(Errno.EXDEV):
        world.rename(b"/proc/meminfo", b"/x")
