"""The picture of a trace in the documentation is one of what a run is traced as now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.anyio


def names(picture: str) -> list[str]:
    """What stands on the left, without the durations on the right."""
    texts = [text.text or '' for text in ElementTree.fromstring(picture).iter('{http://www.w3.org/2000/svg}text')]
    return [text for text in texts if not re.match(r'\d+\.\d ms', text)]


async def test_the_picture_in_the_documentation_is_up_to_date():
    program: dict[str, Any] = runpy.run_path(str(ROOT / 'docs/trace.py'))
    spans = await program['trace']()
    picture: str = program['draw'](spans)
    for name in program['PALETTES']:
        assert names(picture) == names((ROOT / 'docs/images' / name).read_text('utf-8')), (
            'Draw it again with: python docs/trace.py docs/images'
        )
    assert 'execute_tool run_skill_script unit-converter scripts/convert.py' in names(picture)
    assert 'exit code 2' in picture
