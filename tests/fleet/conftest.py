"""Tests of fleets. Those that need a Ray cluster are in `on_a_cluster`, and run in a process of
their own (`test_fleet.py`): Ray's threads must not be in the process that runs other tests."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("WASMSAND_FLEET_TESTS") else ["on_a_cluster"]
