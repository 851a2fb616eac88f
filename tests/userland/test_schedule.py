"""Building: order, reuse, failure, interruption, reproducibility."""

from __future__ import annotations

import shutil
import threading
import time

import pytest

from tests.userland.conftest import World
from userland.builder.commands import Commands
from userland.builder.errors import (
    DiskFull,
    InputsChanged,
    Interrupted,
    NotReproducible,
    StepFailed,
)

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")

SLEEP_SCRIPT = '#!/bin/sh\nmkdir -p "$2"; echo partial > "$2/content"; sleep 600 & wait\n'


def test_output_is_built_once_and_then_comes_from_the_cache(world: World) -> None:
    world.add("tool", content="one")
    first = world.build("tool")["tool"]
    assert (first.folder / "sysroot/content").read_text() == "one"
    assert (first.folder / "licences/COPYING").read_text() == "the terms\n"
    assert set(first.seconds) == {"fetch", "unpack", "configure", "make", "finish"}
    shutil.rmtree(world.mirror)
    second = world.build("tool")["tool"]
    assert second.folder == first.folder
    lines = world.output.getvalue().splitlines()
    assert lines[-2].startswith("tool 1.0: built  (")
    assert lines[-1] == "tool 1.0: cached"


def test_changed_source_is_built_again_beside_the_old_output(world: World) -> None:
    world.add("tool", content="one")
    first = world.build("tool")["tool"]
    world.add("tool", content="two")
    second = world.build("tool")["tool"]
    assert (first.folder / "sysroot/content").read_text() == "one"
    assert (second.folder / "sysroot/content").read_text() == "two"


def test_dependency_is_finished_before_its_user_starts(world: World) -> None:
    world.add("base", script='#!/bin/sh\nsleep 0.3; mkdir "$2"; date +%s%N > "$2/time"\n')
    world.add("user", script='#!/bin/sh\nmkdir "$2"; date +%s%N > "$2/time"\n', depends='["base"]')
    built = world.build("user")
    times = [int((built[name].folder / "sysroot/time").read_text()) for name in ("base", "user")]
    assert times[0] < times[1]


def test_independent_recipes_are_built_at_the_same_time(world: World) -> None:
    # Each waits for a file of the other: one after the other, neither would end.
    meeting = world.root / "meeting"
    meeting.mkdir()
    script = (
        '#!/bin/sh\nmkdir "$2"; touch {0}/{1}\n'
        "for i in $(seq 100); do [ -e {0}/{2} ] && exit 0; sleep 0.1; done; exit 1\n"
    )
    world.add("left", script=script.format(meeting, "left", "right"))
    world.add("right", script=script.format(meeting, "right", "left"))
    assert set(world.build("left", "right")) == {"left", "right"}


def test_failure_names_step_log_and_last_lines_and_leaves_nothing(world: World) -> None:
    world.add("tool", script="#!/bin/sh\necho compiling; echo 'error: no such thing' >&2; exit 3\n")
    with pytest.raises(StepFailed) as caught:
        world.build("tool")
    assert str(caught.value).startswith("tool: make failed: exit status 3\n")
    assert "error: no such thing" in str(caught.value)
    assert str(caught.value.log) in caught.value.advice
    assert "compiling\nerror: no such thing\n" in caught.value.log.read_text()
    assert list(world.cache.work.iterdir()) == []
    assert world.cache.find("tool", world.keys()["tool"]) is None


def test_failure_stops_users_but_not_others(world: World) -> None:
    world.add("bad", script="#!/bin/sh\nexit 1\n")
    world.add("user", depends='["bad"]')
    world.add("other")
    with pytest.raises(StepFailed, match="bad: make failed"):
        world.build("user", "other")
    assert world.cache.find("other", world.keys()["other"]) is not None
    assert "user: not built, because bad failed" in world.output.getvalue()


def test_full_disk_inside_a_command_is_recognised(world: World) -> None:
    script = "#!/bin/sh\necho 'write error: No space left on device' >&2; exit 1\n"
    world.add("tool", script=script)
    with pytest.raises(DiskFull):
        world.build("tool")


def test_interrupted_build_ends_its_commands_and_leaves_nothing(world: World) -> None:
    world.add("tool", script=SLEEP_SCRIPT)
    commands = Commands()
    log = world.cache.log_file("tool", world.keys()["tool"])

    def stop_when_running() -> None:
        while not (log.exists() and b"### make" in log.read_bytes()):
            time.sleep(0.02)
        time.sleep(0.2)
        commands.stop()

    stopper = threading.Thread(target=stop_when_running)
    stopper.start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        world.build("tool", commands=commands)
    stopper.join()
    assert time.monotonic() - began < 30
    assert list(world.cache.work.iterdir()) == []
    assert world.cache.find("tool", world.keys()["tool"]) is None


def test_rebuild_accepts_the_same_bytes(world: World) -> None:
    world.add("tool")
    first = world.build("tool")["tool"]
    assert world.build("tool", rebuild=True)["tool"].folder == first.folder
    assert "again: the same bytes" in world.output.getvalue()


def test_rebuild_finds_the_path_of_the_build_in_an_output(world: World) -> None:
    world.add("tool", script='#!/bin/sh\nmkdir "$2"; echo "$1" > "$2/path"\n')
    world.build("tool")
    with pytest.raises(NotReproducible, match="differs in sysroot/path"):
        world.build("tool", rebuild=True)


def test_two_builders_at_once_build_a_recipe_once(world: World) -> None:
    count = world.root / "count"
    script = f'#!/bin/sh\necho x >> {count}; sleep 0.5; mkdir "$2"\n'
    world.add("tool", script=script)
    threads = [threading.Thread(target=world.build, args=["tool"]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.read_text() == "x\n"


def test_recipe_that_depends_on_an_interface_is_built(world: World) -> None:
    world.add("base", content="one")
    recipe = world.recipes_folder / "base/recipe.toml"
    recipe.write_text('interface = "headers 1"\n' + recipe.read_text())
    world.add("user", depends='["base"]')
    first = world.build("user")["user"]
    recipe.write_text(recipe.read_text() + "# edited\n")
    assert world.build("user")["user"].folder == first.folder


def test_input_edited_during_its_build_gives_no_output(world: World) -> None:
    world.add("tool")
    script = world.root / "tool.sh"
    script.write_text(f'#!/bin/sh\nmkdir "$2"; echo "# edited" >> {script}\n')
    key = world.keys()["tool"]
    with pytest.raises(InputsChanged):
        world.build("tool")
    assert world.cache.find("tool", key) is None
