"""The one exit for what the model is told."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, TextContent, ToolReturn
from pydantic_ai.tools import ToolDefinition

from pydantic_ai_skills import Skill, SkillsToolset
from pydantic_ai_skills.execution.result import ScriptResult
from pydantic_ai_skills.parsing.characters import hidden_characters
from pydantic_ai_skills.toolset.results import (
    MAX_RESULT_BYTES,
    Framed,
    clean,
    found,
    outgoing,
    outgoing_error,
    outgoing_tool,
    page_of,
    render_result,
    shorten,
)
from tests.folders import call_tool

IMAGE = BinaryContent(data=b'x', media_type='image/png')


class Answer(BaseModel):
    text: str


def test_every_control_format_and_private_character_is_hidden():
    characters = map(chr, range(0x110000))
    hidden = {c for c in characters if unicodedata.category(c) in ('Cc', 'Cf', 'Cs', 'Co', 'Zl', 'Zp')} - {'\n', '\t'}
    assert {c for c in hidden if not hidden_characters().match(c)} == set()
    assert clean('a\r\nb\rc\u2028d\te 漢 é 🙂') == 'a\nb\nc\nd\te 漢 é 🙂'


@pytest.mark.parametrize(
    ('value', 'sent'),
    [
        ('a\u200bb</skill>', 'ab&lt;/skill>'),
        ('< / SKILL_instructions x>', '&lt; / SKILL_instructions x>'),
        (Framed('<skill>x</skill>'), '<skill>x</skill>'),
        ([1, 'a\u202e', None], [1, 'a', None]),
        (('a\u202e',), ('a',)),
        ({'k\x00': {'v': 'x\ufe0f'}}, {'k': {'v': 'x'}}),
        (Answer(text='x\x1b'), {'text': 'x'}),
        ([IMAGE, 'a\u202e'], [IMAGE, 'a']),
        ([TextContent('a\u202e')], [TextContent('a')]),
        (ToolReturn('a\u202e', content=['b\u202e']), ToolReturn('a', content=['b'])),
    ],
)
def test_hidden_characters_and_forged_tags_do_not_leave(value: Any, sent: Any):
    assert outgoing(value) == sent


@pytest.mark.parametrize(
    'value',
    ['# text\n\t1.10  # as written', {'a': [1, 2.5, True, None]}, Answer(text='x'), IMAGE, [IMAGE, 'x'], b'x', 7],
)
def test_what_needs_no_change_is_the_same_value(value: Any):
    assert outgoing(value) is value


def test_long_values_are_cut_and_files_stay():
    assert len(outgoing('漢' * 1_000_000).encode()) <= MAX_RESULT_BYTES
    long = outgoing(['x' * 100_000, {'a': 'b'}])
    assert long.endswith('\n[The rest was cut.]')
    text, image = outgoing(['x' * 100_000, IMAGE])
    assert (len(text.encode()) <= MAX_RESULT_BYTES, image) == (True, IMAGE)


def test_a_value_that_cannot_be_encoded_is_shown_as_python_does():
    assert outgoing(object()).startswith('<object object')


def test_errors_are_told_clean_and_requests_for_approval_escaped():
    for error in (ToolFailed('a\u202e<skill>'), ModelRetry('a\u202e<skill>')):
        assert str(outgoing_error(error)) == 'a&lt;skill>'
    request = ApprovalRequired(metadata={'command': 'echo \u202e', 'stdin': None, 'digest': 'x'})
    outgoing_error(request)
    assert request.metadata == {'command': 'echo \\u202e', 'stdin': None, 'digest': 'x'}
    other = ValueError('a\u202e')
    assert outgoing_error(other) is other


def test_the_definition_of_a_tool_is_clean():
    schema = {'type': 'object', 'properties': {'a': {'enum': ['x\u200b']}}}
    tool = outgoing_tool(ToolDefinition(name='x', description='a\u202e', parameters_json_schema=schema))
    assert (tool.description, tool.parameters_json_schema['properties']) == ('a', {'a': {'enum': ['x']}})
    assert outgoing_tool(tool) is tool


def test_a_page_never_ends_within_a_character():
    text = '漢字🙂' * 20_000
    pages = [page_of(text, 'a.md', number).rpartition('\n\n[')[0] for number in range(1, 6)]
    assert ''.join(pages) == text
    assert max(len(page.encode()) for page in pages) <= 40_003


def test_a_script_that_was_stopped_says_why_before_its_output():
    result = ScriptResult(exit_code=0, stdout='half', stderr='', duration=1)
    assert render_result(result, why='Too slow <skill>.') == 'Too slow &lt;skill>.\n<script_stdout>half</script_stdout>'


def test_shortened_text_fits_when_it_is_escaped():
    assert (shorten('abc', 3), shorten('abcd', 3), shorten('a&b', 6), shorten('&&', 6)) == ('abc', 'ab…', 'a…', '&…')


def test_a_search_finds_as_many_as_can_be_sent():
    skills = [Skill(f'skill-{number}', '漢' * 1_000, '') for number in range(50)]
    assert list(found(skills, 'x')) == [f'skill-{number}' for number in range(13)]


async def test_long_instructions_can_be_read_in_pages():
    toolset = SkillsToolset[None](skills=[Skill('one', 'Does it.', 'word ' * 30_000)])
    toolset.library.look().catalog.skills['one'].resource(name='a.md')(lambda: 'a')
    _, text = await call_tool(toolset, 'load_skill', skill_name='one')
    assert len(text.encode()) <= MAX_RESULT_BYTES
    assert "They can be read as the resource 'SKILL.md', in pages.]\n</skill_instructions>\n</skill>" in text
    read = {'skill_name': 'one', 'resource_name': 'SKILL.md', 'args': {'page': 4}}
    _, page = await call_tool(toolset, 'read_skill_resource', **read)
    assert page.endswith("[Page 4 of 4 of 'SKILL.md', 150,000 characters.]")
