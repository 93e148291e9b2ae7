"""What is shown of work that takes long: a line that changes, in a notebook or on a terminal."""

import io
import logging
import sys
import types
import unittest
from unittest import mock

import hone
from hone import _progress

MLP = "zoo:mlp,size=tiny"


def notebook(shown):
    """The modules of IPython as a notebook has them; what a cell shows goes to the list."""

    class Pretty:
        def __init__(self, text):
            self.text = text

    class Handle:
        def update(self, what):
            shown[-1] = what.text

    def display(what, display_id):
        assert display_id
        shown.append(what.text)
        return Handle()

    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: types.SimpleNamespace(kernel=True)
    shell.display = types.ModuleType("IPython.display")
    shell.display.Pretty, shell.display.display = Pretty, display
    return {"IPython": shell, "IPython.display": shell.display}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@mock.patch.object(_progress, "PATIENCE", 0)
class Progress(unittest.TestCase):
    def tune(self, **options):
        hone.tune(MLP, seconds=1, threads=1, cache=None, log=None, **options)

    def test_is_one_line_of_a_cell_in_notebooks(self):
        shown = []
        with mock.patch.dict(sys.modules, notebook(shown)):
            self.tune()
        self.assertEqual(len(shown), 1)
        self.assertIn("seconds", shown[0])

    def test_is_a_bar_on_terminals_that_is_wiped(self):
        with mock.patch.object(sys, "stderr", Terminal()) as terminal:
            self.tune()
        self.assertIn("seconds", terminal.getvalue())
        self.assertTrue(terminal.getvalue().endswith(" \r"))

    def test_is_nothing_elsewhere_or_if_nobody_wants_it(self):
        with mock.patch.object(sys, "stderr", io.StringIO()) as talk:
            self.tune()
        self.assertEqual(talk.getvalue(), "")
        shown = []
        with mock.patch.dict(sys.modules, notebook(shown)):
            self.tune(progress=False)
        self.assertEqual(shown, [])

    def test_has_notes_in_the_log_of_python(self):
        state = {"label": "seconds", "elapsed": 0.1, "line": "1/2 seconds", "bar": "[##..]"}
        with self.assertLogs("hone", logging.INFO) as log, _progress.hearing(None) as hears:
            hears(state, ["kernel 4 of 32"])
        self.assertEqual(log.output, ["INFO:hone:kernel 4 of 32"])


if __name__ == "__main__":
    unittest.main()
