"""What the Node process of a machine may not do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.v86.built import needs_v86
from wasmsand.confinement.system_calls import numbers_are_known
from wasmsand.v86.image import find_image

pytestmark = needs_v86

ATTEMPTS = """
const fs = require("node:fs");
const results = {};
const attempt = (name, action) => {
    try { action(); results[name] = "allowed"; } catch (error) { results[name] = error.code; }
};
attempt("write", () => fs.writeFileSync(process.argv[2] + "/written", "x"));
attempt("read", () => fs.readFileSync("/etc/passwd"));
attempt("start", () => {
    const done = require("node:child_process").spawnSync("/bin/true");
    if (done.error) throw done.error;
});
const socket = require("node:net").connect(1, "127.0.0.1");
socket.on("error", (error) => {
    results.connect = error.code;
    results.environment = Object.keys(process.env);
    console.log(JSON.stringify(results));
});
"""


@pytest.mark.skipif(not numbers_are_known(), reason="this system has no such barriers")
def test_node_may_not_write_connect_or_start_programs(tmp_path: Path) -> None:
    script = tmp_path / "attempts.cjs"
    script.write_text(ATTEMPTS)
    settings = {
        "node": str(find_image().node),
        "readable": [str(tmp_path)],
        "parent": os.getpid(),
        "memory_bytes": 1 << 30,
        "disk_bytes": 1 << 30,
        "arguments": [str(script), str(tmp_path)],
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "wasmsand.v86.confined", json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    results = json.loads(done.stdout)
    assert results == {
        "write": "EACCES",
        "read": "EACCES",
        "start": "EACCES",
        "connect": "EPERM",
        "environment": [],
    }
    assert not (tmp_path / "written").exists()
