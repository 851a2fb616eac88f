"""A worker that guests have taken over: what it can say to the front process, and what it gets."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wasmsand.http.quotas import Quotas
from wasmsand.http.store import ServerStore
from wasmsand.http.tokens import Quota, Token, TokenTable
from wasmsand.http.workers.channel import Caller, Calls, answer_calls, send_message
from wasmsand.http.workers.frames import FRAME_MAX, FrameConnection, Lost
from wasmsand.http.workers.ledger import Account, Ledger, WorkerMisbehaves
from wasmsand.http.workers.merging import items_of, merged_metrics
from wasmsand.http.workers.slot import WorkerLost
from wasmsand.http.workers.store_service import StoreService
from wasmsand.sdk.errors import StoreError

pytestmark = pytest.mark.no_userland

ONE, TWO = f"sbx-{'1' * 24}", f"sbx-{'2' * 24}"


@pytest.fixture
def ledger() -> Ledger:
    tokens = [Token.of(name, f"the-token-of-{name}") for name in ("alice", "bob")]
    return Ledger(Quotas(10), TokenTable(tokens))


def reserve(ledger: Ledger, account: Account, identity: str, owner: str = "alice") -> None:
    ledger.call(account, "reserve", {"owner": owner, "size": 5, "identity": identity})


def test_a_worker_cannot_claim_the_sandbox_of_another(ledger: Ledger) -> None:
    mine, theirs = Account(None), Account(None)
    reserve(ledger, mine, ONE)
    with pytest.raises(WorkerMisbehaves):
        reserve(ledger, theirs, ONE)
    ledger.call(theirs, "forget", {"identity": ONE})
    assert ledger.home(ONE) is mine


def test_a_worker_gives_back_only_what_it_has(ledger: Ledger) -> None:
    mine, theirs = Account(None), Account(None)
    reserve(ledger, mine, ONE)
    for call, size in (("release", 5), ("release_bytes", 1), ("reserve", -1), ("other", 0)):
        with pytest.raises(WorkerMisbehaves):
            ledger.call(theirs, call, {"owner": "alice", "size": size, "identity": TWO})
    with pytest.raises(WorkerMisbehaves):
        ledger.call(mine, "release", {"owner": "alice", "size": 6})
    alice = ledger.tokens.named("alice")
    assert alice is not None
    assert (ledger.quotas.share(alice).sandboxes, ledger.quotas.share(alice).bytes) == (1, 5)


@pytest.mark.parametrize("identity", ["", "x", "../../etc", "sbx-1", f"sbx-{'1' * 24}/.."])
def test_an_id_has_the_form_of_an_id(ledger: Ledger, identity: str) -> None:
    with pytest.raises(WorkerMisbehaves):
        reserve(ledger, Account(None), identity)


def test_a_tenants_worker_speaks_for_nobody_else(ledger: Ledger) -> None:
    account = Account("bob")
    for owner in ("alice", "nobody"):
        with pytest.raises(WorkerMisbehaves):
            reserve(ledger, account, ONE, owner)
    reserve(ledger, account, ONE, "bob")


def test_what_a_dead_worker_had_is_given_back(ledger: Ledger) -> None:
    account = Account(None)
    reserve(ledger, account, ONE)
    reserve(ledger, account, TWO)
    ledger.call(account, "reserve_snapshot", {"owner": "alice", "size": 7, "identity": TWO})
    assert ledger.died(account, -9, {TWO: "alice"}) == 1
    alice, bob = ledger.tokens.named("alice"), ledger.tokens.named("bob")
    assert alice is not None
    assert bob is not None
    assert (ledger.quotas.share(alice).sandboxes, ledger.quotas.share(alice).bytes) == (0, 0)
    lost = ledger.lost(alice, ONE)
    assert lost is not None
    assert lost.exit_status == -9
    assert ledger.lost(bob, ONE) is None
    assert ledger.home(ONE) is None
    assert ledger.home(TWO) is account


def test_a_sandbox_that_a_dead_worker_was_about_to_delete_comes_back(ledger: Ledger) -> None:
    mine, theirs = Account(None), Account(None)
    reserve(ledger, mine, ONE)
    reserve(ledger, theirs, TWO)
    ledger.call(mine, "forget", {"identity": ONE})
    ledger.died(mine, -9, {ONE: "alice", TWO: "alice"})
    assert ledger.home(ONE) is mine
    assert ledger.home(TWO) is theirs  # a worker may have written a state with any id


def test_a_revoked_token_can_still_give_back(ledger: Ledger) -> None:
    account = Account(None)
    reserve(ledger, account, ONE)
    ledger.tokens.replace([Token.of("bob", "the-token-of-bob")])
    ledger.call(account, "release", {"owner": "alice", "size": 5})
    with pytest.raises(WorkerMisbehaves):
        reserve(ledger, Account(None), TWO)


def test_no_call_of_a_dead_worker_is_begun_after_its_end() -> None:
    """Although somebody else still has its end of the channel."""
    front, worker = socket.socketpair()
    began, released, ended = threading.Event(), threading.Event(), threading.Event()
    handled: list[str] = []

    def handle(name: str, _values: dict[str, Any]) -> tuple[Any, int | None]:
        began.set()
        assert released.wait(60)
        handled.append(name)
        return None, None

    with worker:
        calls = Calls(front, handle)
        send_message(worker, ["first", {}])
        send_message(worker, ["second", {}])
        assert began.wait(60)

        def end() -> None:
            calls.end()
            ended.set()

        threading.Thread(target=end).start()
        worker.settimeout(60)
        assert worker.recv(1) == b""  # the end has begun
        assert not ended.is_set()  # the first call is not done
        released.set()
        assert ended.wait(60)
    assert handled == ["first"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreService]:
    service = StoreService(ServerStore(tmp_path / "store"))
    yield service
    service.died("mine")
    service.close()


def written(store: StoreService, slot: object, identity: str, owner: str = "alice") -> int:
    """Store a state as a worker does; returns its size."""
    number, descriptor = store.call(slot, None, "begin", {"identity": identity})
    assert descriptor is not None
    os.write(descriptor, b"state")
    os.close(descriptor)
    record = f'{{"owner":"{owner}"}}'.encode()
    size, _ = store.call(slot, None, "commit", {"part": number, "record": record})
    return int(size)


def test_a_worker_reaches_only_the_states_of_its_slot(store: StoreService) -> None:
    assert written(store, "mine", ONE) == 5
    for call in ("begin", "record", "state", "open", "delete", "write_record"):
        with pytest.raises(WorkerMisbehaves):
            store.call("theirs", None, call, {"identity": ONE, "record": b"{}"})
    assert store.call("theirs", None, "ids", {}) == ([], None)
    assert store.call("mine", None, "ids", {}) == ([ONE], None)
    _, descriptor = store.call("mine", None, "open", {"identity": ONE})
    assert descriptor is not None
    with os.fdopen(descriptor, "rb") as stream:
        assert stream.read() == b"state"


def test_a_worker_cannot_commit_the_part_of_another(store: StoreService) -> None:
    number, descriptor = store.call("mine", None, "begin", {"identity": ONE})
    assert descriptor is not None
    os.close(descriptor)
    with pytest.raises(WorkerMisbehaves):
        store.call("theirs", None, "commit", {"part": number, "record": b'{"owner":"alice"}'})


def test_a_tenants_worker_stores_for_nobody_else(store: StoreService) -> None:
    number, descriptor = store.call("mine", "bob", "begin", {"identity": ONE})
    assert descriptor is not None
    os.close(descriptor)
    with pytest.raises(WorkerMisbehaves):
        store.call("mine", "bob", "commit", {"part": number, "record": b'{"owner":"alice"}'})
    assert not list(store.store.path.glob("states/*"))
    assert not list(store.store.path.glob("states/.*.part"))


def test_what_a_dead_worker_was_writing_is_dropped(store: StoreService) -> None:
    assert written(store, "mine", ONE) == 5
    _, descriptor = store.call("mine", None, "begin", {"identity": ONE})
    assert descriptor is not None
    os.close(descriptor)
    store.died("mine")
    assert len(os.listdir(store.store.path / "states")) == 1
    assert store.stored_by("mine") == {ONE}


def test_totals_are_those_of_all_workers(store: StoreService) -> None:
    written(store, "mine", ONE)
    written(store, "theirs", TWO, "bob")
    record = len('{"owner":"alice"}')
    totals, _ = store.call("mine", None, "totals", {"owner": "alice"})
    assert (totals["own_sandboxes"], totals["own_bytes"]) == (1, 5 + record)
    assert totals["sandboxes"] == 2


def test_a_call_that_breaks_the_rules_ends_the_channel(
    store: StoreService, caplog: pytest.LogCaptureFixture
) -> None:
    ours, workers = socket.socketpair()

    def handle(name: str, values: dict[str, Any]) -> tuple[Any, int | None]:
        return store.call("mine", None, name, values)

    answering = threading.Thread(target=answer_calls, args=(ours, handle))
    answering.start()
    caller = Caller(workers)
    assert caller.call("ids") == []
    with pytest.raises(StoreError):
        caller.call("record", identity="../x")
    with pytest.raises(StoreError):
        caller.call("ids")
    answering.join()
    workers.close()
    assert "WorkerMisbehaves" in caplog.text


@pytest.mark.parametrize(
    "sent", [b"\x63\x00\x00\x00\x00", b"\x02" + (FRAME_MAX + 1).to_bytes(4, "little")]
)
def test_a_frame_that_is_unknown_or_too_large_ends_the_connection(sent: bytes) -> None:
    async def receive() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(FrameConnection, sock=ours)
        theirs.sendall(sent)
        with pytest.raises(Lost):
            await asyncio.wait_for(connection.next(), 10)
        theirs.close()

    asyncio.run(receive())


def test_a_side_that_does_not_take_frames_stops_the_other() -> None:
    async def fill() -> int:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(FrameConnection, sock=ours)
        data = (b"\x02" + (65536).to_bytes(4, "little") + bytes(65536)) * 400
        sent = refused = 0
        while refused < 40 and sent < len(data):
            try:
                sent += theirs.send(data[sent : sent + 65536])
                refused = 0
            except BlockingIOError:
                refused += 1
                await asyncio.sleep(0.005)
        connection.close()
        theirs.close()
        return sent

    assert asyncio.run(fill()) < 8 * 1024 * 1024


def test_answers_of_workers_are_checked_before_they_are_merged() -> None:
    for body in (b"", b"[]", b'{"sandboxes":[{"id":1}]}', b'{"sandboxes":7}'):
        with pytest.raises(WorkerLost):
            items_of(body, "sandboxes")
    with pytest.raises(WorkerLost):
        merged_metrics([b"a one\n"])
    first = b'# TYPE a counter\na{b="1"} 1.0\na{b="2"} 2.0\n'
    second = b'# TYPE a counter\na{b="2"} 5.0\n# TYPE c gauge\nc 1.0\n'
    assert merged_metrics([first, second]).decode().splitlines() == [
        "# TYPE a counter",
        'a{b="1"} 1.0',
        'a{b="2"} 7.0',
        "# TYPE c gauge",
        "c 1.0",
    ]


def test_quota_of_a_new_token_is_used(ledger: Ledger) -> None:
    account = Account(None)
    reserve(ledger, account, ONE)
    ledger.tokens.replace([Token.of("alice", "the-token-of-alice", Quota(max_sandboxes=1))])
    with pytest.raises(Exception, match="max_sandboxes of alice"):
        reserve(ledger, account, TWO)
