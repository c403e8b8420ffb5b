from __future__ import annotations

import pytest

from pydantic_ai_skills.toolset.invoke import fill_in_arguments


@pytest.mark.parametrize(
    ('text', 'arguments', 'filled'),
    [
        ('Fix $ARGUMENTS now.', 'issue 12', 'Fix issue 12 now.'),
        ('Fix $ARGUMENTS now.', '', 'Fix  now.'),
        ('$ARGUMENTS', '"a b" c', '"a b" c'),
        ('$ARGUMENTS[0] and $ARGUMENTS[1]', '"a b" c', 'a b and c'),
        ('$0 to $1', 'a b', 'a to b'),
        ('$1 to $2', 'a b', 'a to b'),
        ('$1 to $2', 'a', 'a to $2'),
        ('Tag v$1, branch release_$1$2.', '1.2 b', 'Tag v1.2, branch release_1.2b.'),
        ('$ARGUMENTS[3]', 'a', '$ARGUMENTS[3]\n\nARGUMENTS: a'),
        ('It costs $10 or $1.50, US$1, \\$1, $$1, $1st.', 'a b', 'It costs $10 or $1.50, US$1, \\$1, $$1, $1st.\n\nARGUMENTS: a b'),
        ('Use $1.', '$ARGUMENTS[0]', 'Use $ARGUMENTS[0].'),
        ('Use $1.', 'it\'s "broken', "Use it's."),
        ('No place.', 'a b', 'No place.\n\nARGUMENTS: a b'),
        ('No place.', ' ', 'No place.'),
        ('Run !`rm -rf $ARGUMENTS`', 'x', 'Run !`rm -rf x`'),
    ],
)  # fmt: skip
def test_arguments_go_where_the_text_wants_them(text: str, arguments: str, filled: str):
    assert fill_in_arguments(text, arguments) == filled
