"""The recording of a terminal in the documentation shows what the command line prints now."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

IMAGES = Path(__file__).parent.parent.parent / 'docs/images'


def shown(picture: Path) -> list[str]:
    texts = ElementTree.fromstring(picture.read_text('utf-8')).iter('{http://www.w3.org/2000/svg}text')
    return [text.text or '' for text in texts]


def test_the_recording_is_up_to_date(pytestconfig: pytest.Config) -> None:
    program: dict[str, Any] = runpy.run_path(str(IMAGES.parent / 'terminal.py'))
    if pytestconfig.getoption('--update-examples'):
        program['write'](IMAGES)
    lines = [text for _, text in program['record']()]
    assert 'The script printed: Hello, Ada!' in lines
    for name in program['PALETTES']:
        assert shown(IMAGES / name) == lines, 'Record it again with: python docs/terminal.py docs/images'
