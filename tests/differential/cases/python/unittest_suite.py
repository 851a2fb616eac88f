"""unittest, with a failure, an error, a skip, subtests and mocks."""

import io
import re
import sys
import unittest
from unittest import mock


def fetch(url: str, opener=None) -> str:
    return opener(url).upper()


class Tests(unittest.TestCase):
    def setUp(self) -> None:
        self.data = [1, 2, 3]

    def test_passes(self) -> None:
        self.assertEqual(sum(self.data), 6)
        with self.assertRaisesRegex(ValueError, "invalid literal"):
            int("x")

    def test_fails(self) -> None:
        self.assertEqual({"a": [1, 2]}, {"a": [1, 3]})

    def test_errors(self) -> None:
        self.data[10]

    @unittest.skip("not today")
    def test_skipped(self) -> None:
        raise AssertionError

    def test_subtests(self) -> None:
        for i in range(3):
            with self.subTest(i=i):
                self.assertLess(i, 2)

    def test_mock(self) -> None:
        opener = mock.Mock(return_value="body")
        self.assertEqual(fetch("u", opener), "BODY")
        opener.assert_called_once_with("u")
        with mock.patch("sys.platform", "beos"):
            self.assertEqual(sys.platform, "beos")


stream = io.StringIO()
result = unittest.TextTestRunner(stream, verbosity=2).run(
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests)
)
print(re.sub(r"in [\d.]+s", "in Xs", stream.getvalue()))
print(result.testsRun, len(result.failures), len(result.errors), len(result.skipped))
