"""`sandbox.files.watch`: changes to files."""

from __future__ import annotations

import threading

from wasmsand import Sandbox


def test_poll_returns_what_changed_since_the_last_poll(sandbox: Sandbox) -> None:
    for name in ("kept", "changed", "removed"):
        sandbox.files.write(f"d/{name}", "x")
    with sandbox.files.watch("d") as watch:
        assert watch.poll() == []
        sandbox.commands.run("cd d; echo more >> changed; rm removed; mkdir sub; echo x > sub/new")
        events = watch.poll()
        assert [(event.type, event.path.removeprefix("/home/user/d/")) for event in events] == [
            ("deleted", "removed"),
            ("modified", "changed"),
            ("created", "sub"),
            ("created", "sub/new"),
        ]
        assert events[0].info is None
        assert events[1].info is not None
        assert events[1].info.size == 6
        assert watch.poll() == []


def test_without_recursion_only_the_directory_itself_is_watched(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("d/sub")
    with sandbox.files.watch("d", recursive=False) as watch:
        sandbox.files.write("d/sub/new", "x")
        sandbox.files.write("d/new", "x")
        names = [(event.type, event.path.rpartition("/")[2]) for event in watch.poll()]
        assert ("created", "new") in names
        assert ("created", "sub/new") not in names


def test_a_file_and_a_path_that_does_not_exist_yet_can_be_watched(sandbox: Sandbox) -> None:
    with sandbox.files.watch("f") as watch:
        sandbox.files.write("f", "one")
        assert [event.type for event in watch.poll()] == ["created"]
        sandbox.files.chmod("f", 0o600)
        assert [event.type for event in watch.poll()] == ["modified"]
        sandbox.files.rm("f")
        assert [event.type for event in watch.poll()] == ["deleted"]


def test_iterating_waits_for_changes(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("d")
    with sandbox.files.watch("d", interval_ms=20) as watch:
        command = sandbox.commands.start("sleep 0.3; echo 1 > d/one; sleep 0.3; echo 2 > d/two")
        seen = set()
        for event in watch:
            seen.add(event.path)
            if event.path.endswith("two"):
                break
        assert seen == {"/home/user/d/one", "/home/user/d/two"}
        command.wait()


def test_closing_ends_the_iteration(sandbox: Sandbox) -> None:
    watch = sandbox.files.watch()
    threading.Timer(0.2, watch.close).start()
    assert list(watch) == []
