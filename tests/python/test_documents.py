"""What the documents show is what happens."""

import doctest
import re

import pytest


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_sessions(root, page, monkeypatch):
    monkeypatch.chdir(root)
    blocks = re.findall(r"^```pycon\n(.*?)^```$", (root / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
        runner = doctest.DocTestRunner(verbose=False)
        said = []
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
        assert runner.failures == 0, "".join(said)
