"""The `tools` of a frontmatter: what is read, and what is left out with a problem."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from inline_snapshot import snapshot

from pydantic_ai_skills.parsing import parse_skill_text
from pydantic_ai_skills.parsing.skill_names import tool_name
from pydantic_ai_skills.parsing.tool_specs import MAX_TOOLS, ToolArgument, ToolSpec


def read(tools: str, *, name: str = 'alpha') -> tuple[tuple[ToolSpec, ...], list[tuple[str, str]]]:
    text = f'---\nname: {name}\ndescription: Does it.\ntools:\n{indent(dedent(tools), "  ")}\n---\nDo it.'
    header, _, problems = parse_skill_text(text)
    assert header is not None
    return header.tool_specs, [(problem.code, problem.message) for problem in problems]


def test_a_declared_tool_is_read_whole():
    tools, problems = read("""
        fetch-page:
          description: Fetch a page.
          script: ./scripts/fetch.py
          pass: flags
          timeout: 2.5
          requires_approval: yes
          args:
            url: string
            depth: {type: int, description: How deep., default: 1}
            mode: {type: string, enum: [fast, full], required: false}
            tags: {type: array, items: {type: string, enum: [a, b]}, default: [a]}
            sizes: {type: list, items: integer, default: [1, 2]}
            options: {type: object, default: {a: b}}
            ratio: {type: number, enum: [0.5, 2]}
            loud: {type: boolean, default: off}
        """)
    assert problems == []
    assert tools == (
        ToolSpec(
            name='fetch_page',
            description='Fetch a page.',
            script='scripts/fetch.py',
            passing='flags',
            timeout=2.5,
            requires_approval=True,
            arguments=(
                ToolArgument(name='url', type='string'),
                ToolArgument(name='depth', type='integer', description='How deep.', default=1, required=False),
                ToolArgument(name='mode', type='string', enum=('fast', 'full'), required=False),
                ToolArgument(
                    name='tags', type='array', items='string', item_enum=('a', 'b'), default=['a'], required=False
                ),
                ToolArgument(name='sizes', type='array', items='integer', default=[1, 2], required=False),
                ToolArgument(name='options', type='object', default={'a': 'b'}, required=False),
                ToolArgument(name='ratio', type='number', enum=(0.5, 2.0)),
                ToolArgument(name='loud', type='boolean', default=False, required=False),
            ),
        ),
    )


@pytest.mark.parametrize(
    ('word', 'flag'),
    [
        *((word, True) for word in ('true', 'Yes', 'ON', '1')),
        *((word, False) for word in ('false', 'No', 'OFF', '0', '')),
    ],
)
def test_truth_words_mean_the_same_everywhere(word: str, flag: bool):
    options = f'requires_approval: "{word}", args: {{a: {{type: boolean, default: "{word}", required: "{word}"}}}}'
    text = f'---\nname: a\ndescription: x\nuser-invocable: "{word}"\ntools: {{go: {{script: go.sh, {options}}}}}\n---\n'
    header, _, problems = parse_skill_text(text)
    assert header is not None
    assert problems == ()
    (tool,) = header.tool_specs
    (argument,) = tool.arguments
    assert (header.user_invocable, tool.requires_approval, argument.default, argument.required) == (flag,) * 4


def test_a_tool_needs_a_script_and_nothing_else():
    tools, problems = read('go: {script: go.sh, args: ""}')
    assert (tools, problems) == ((ToolSpec(name='go', description='Runs go.sh.', script='go.sh'),), [])


@pytest.mark.parametrize(
    ('tools', 'code', 'message'),
    [
        ('go: {script: ../go.sh}', 'tool-script-outside', "'../go.sh' is not a path below the skill's folder"),
        ('go: {script: /bin/sh}', 'tool-script-outside', "'/bin/sh' is not a path below the skill's folder"),
        ('go: {script: "a\\\\..\\\\b"}', 'tool-script-outside', "is not a path below the skill's folder"),
        ('go: {script: "C:/x.py"}', 'tool-script-outside', "is not a path below the skill's folder"),
        ('go: {script: a//b}', 'tool-script-outside', "is not a path below the skill's folder"),
        ('go: {script: go.sh, args: {a: date}}', 'tool-type-unknown', "the type of the argument 'a' is not one of"),
        ('go: {script: go.sh, args: {a: {type: [x]}}}', 'tool-type-unknown', "the type of the argument 'a' is not"),
        ('go: {script: go.sh, args: {a: {type: array, items: date}}}', 'tool-type-unknown', "the argument 'a'"),
        ('go: {description: x}', 'tool-invalid', "it has no 'script'"),
        ('go: {script: [x]}', 'tool-invalid', "its 'script' should be text"),
        ('go: {script: go.sh, shell: true}', 'tool-invalid', "it has no option 'shell'"),
        ('go: {script: go.sh, pass: stdin}', 'tool-invalid', "'pass' is one of 'positional', 'flags', 'json-stdin'"),
        ('go: {script: go.sh, timeout: soon}', 'tool-invalid', "its 'timeout' should be a number of seconds"),
        ('go: {script: go.sh, timeout: 0}', 'tool-invalid', "its 'timeout' should be a number of seconds"),
        ('go: {script: go.sh, timeout: inf}', 'tool-invalid', "its 'timeout' should be a number of seconds"),
        ('go: {script: go.sh, timeout: [1]}', 'tool-invalid', "its 'timeout' should be a number of seconds"),
        ('go: {script: go.sh, requires-approval: maybe}', 'tool-invalid', "'requires_approval' should be 'true' or"),
        ('go: {script: go.sh, args: [a]}', 'tool-invalid', "its 'args' should be a mapping"),
        ('go: {script: go.sh, args: {"a b": string}}', 'tool-invalid', "'a b' cannot be the name of an argument"),
        ('go: {script: go.sh, args: {a: [x]}}', 'tool-invalid', "the argument 'a' should be a type or a mapping"),
        ('go: {script: go.sh, args: {a: {min: 1}}}', 'tool-invalid', "the argument 'a' has no option 'min'"),
        ('go: {script: go.sh, args: {a: {enum: x}}}', 'tool-invalid', "the 'enum' of 'a' should be a list"),
        ('go: {script: go.sh, args: {a: {type: object, enum: [x]}}}', 'tool-invalid', "the 'enum' of 'a' should be"),
        (
            'go: {script: go.sh, args: {a: {type: int, enum: [x]}}}',
            'tool-invalid',
            "a value of 'a' is not of type integer",
        ),
        (
            'go: {script: go.sh, args: {a: {type: bool, default: 2}}}',
            'tool-invalid',
            "a value of 'a' is not of type boolean",
        ),
        (
            'go: {script: go.sh, args: {a: {type: number, default: nan}}}',
            'tool-invalid',
            "a value of 'a' is not of type number",
        ),
        (
            'go: {script: go.sh, args: {a: {type: array, default: x}}}',
            'tool-invalid',
            "a value of 'a' is not of type array",
        ),
        (
            'go: {script: go.sh, args: {a: {enum: [x, y], default: z}}}',
            'tool-invalid',
            "the default of 'a' is not in its",
        ),
        (
            'go: {script: go.sh, args: {a: {type: array, items: {enum: [x]}, default: [x, z]}}}',
            'tool-invalid',
            "the default of 'a' is not in its 'enum'",
        ),
        ('go: {script: go.sh, pass: flags, args: {_a: string}}', 'tool-invalid', "'_a' cannot be the name of a flag"),
        ('go: {script: go.sh, pass: flags, args: {_: string}}', 'tool-invalid', "'_' cannot be the name of a flag"),
        ('"go now": {script: go.sh}', 'tool-invalid', 'a name is made of Latin letters, digits and underscores'),
        ('stop: true', 'tool-invalid', "it should be a mapping with 'description', 'script' and 'args'"),
        ('other-one: {script: go.sh}', 'tool-name-clash', "another tool is called 'other_one' already"),
        (f'{"x" * 58}: {{script: go.sh}}', 'tool-name-too-long', 'has more than 64 characters'),
    ],
)
def test_a_tool_that_cannot_be_made_is_a_problem_and_the_others_are_there(tools: str, code: str, message: str):
    found, ((problem_code, problem_message),) = read(f'other_one: {{script: other.sh}}\n{tools}')
    assert [tool.name for tool in found] == ['other_one']
    assert problem_code == code
    assert message in problem_message


def test_only_so_many_tools_are_offered():
    found, problems = read('\n'.join(f't{i}: {{script: go.sh}}' for i in range(MAX_TOOLS + 1)))
    assert len(found) == MAX_TOOLS
    assert problems == snapshot([('tool-invalid', 'There are 65 tools; the first 64 are offered.')])


@pytest.mark.parametrize('tools', ['tools: Read, Grep', 'tools: [Read]', 'tools: {read: true, write: false}'])
def test_names_of_tools_as_other_programs_write_them_stay_in_the_metadata(tools: str):
    header, _, problems = parse_skill_text(f'---\nname: a\ndescription: Does it.\n{tools}\n---\n')
    assert header is not None
    assert (header.tool_specs, 'tools' in header.metadata, problems) == ((), True, ())


@pytest.mark.parametrize('key', ['model', 'model-settings', 'model_settings'])
def test_a_model_is_ignored_with_a_problem(key: str):
    header, _, problems = parse_skill_text(f'---\nname: a\ndescription: Does it.\n{key}: opus\n---\n')
    assert header is not None
    assert header.metadata == {key: 'opus'}
    assert [(problem.code, problem.severity, problem.line) for problem in problems] == [('model-ignored', 'warning', 4)]


@pytest.mark.parametrize(
    ('skill', 'name'),
    [
        ('web-research', 'web_research__fetch'),
        ('données', 'donnees_a08317__fetch'),
        ('調査', 'skill_216d01__fetch'),
    ],
)
def test_a_tool_is_named_after_its_skill(skill: str, name: str):
    assert tool_name(skill, 'fetch') == name
