"""Characters that a person does not see, or sees elsewhere than they are."""

from __future__ import annotations

import re
from functools import cache

_NOT_CHARACTERS = ''.join(f'{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}' for plane in range(17))


@cache
def hidden_characters() -> re.Pattern[str]:
    """Matches a character that can hide, reorder or smuggle text.

    Characters that Unicode has not assigned yet may be visible, so most of them do not match.
    """
    return re.compile(
        '['
        '\x00-\x08\x0b-\x1f\x7f-\x9f'  # control, except the tab and the end of a line
        '\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\ufff0-\ufffb'  # format
        '\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff'  # zero-width, other ends of lines, and changes of direction
        '\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a'  # format, in old scripts
        '\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\uffa0'  # letters and accents without width
        '\ufe00-\ufe0f\U000e0000-\U000e0fff'  # variation selectors and tags, which can encode whole messages
        '\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff'  # surrogates and private use
        f'\ufdd0-\ufdef{_NOT_CHARACTERS}'
        ']'
    )
