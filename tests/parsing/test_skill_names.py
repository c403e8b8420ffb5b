"""What a skill's name is, and the table of problem codes."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing.skill_names import (
    MAX_NAME_LENGTH,
    check_skill_name,
    normalize_skill_name,
    shorten_skill_name,
)
from pydantic_ai_skills.problems import RULES, SkillProblem, problem


@pytest.mark.parametrize(
    ('wording', 'name'),
    [
        ('MySkillName', 'my-skill-name'),
        ('my_skill_name', 'my-skill-name'),
        ('my skill', 'my-skill'),
        ('my-skill', 'my-skill'),
        ('  --My   Skill!!  ', 'my-skill'),
        ('data_analyzer2', 'data-analyzer2'),
        ('HTMLParser', 'html-parser'),
        ('parseHTML', 'parse-html'),
        ('Version2Beta', 'version2-beta'),
        ('a/b.c', 'a-b-c'),
        ('МойНавык', 'мой-навык'),
        ('Café', 'café'),
        ('Cafe\u0301', 'café'),
        ('ｆｕｌｌ　ｗｉｄｔｈ', 'full-width'),
        ('技能', '技能'),
        ('İstanbul', 'istanbul'),
        ('a\u0316', 'a'),
        ('²', '2'),
        ('x' * 64, 'x' * 64),
    ],
)
def test_any_wording_becomes_a_name(wording: str, name: str):
    assert normalize_skill_name(wording) == name


@pytest.mark.parametrize('wording', ['', ' ', '---', '!?', '\u0301', '🎉', '\ud800'])
def test_wording_without_a_letter_or_digit_gives_no_name(wording: str):
    with pytest.raises(SkillValidationError, match='has no letter or digit to make a skill name of'):
        normalize_skill_name(wording)


@pytest.mark.parametrize(
    ('wording', 'length'), [('x' * 65, 65), ('Ab' * 40, 119), ('x' * 1025, 1025), ('a' + ' ' * 2000, 2001)]
)
def test_wording_that_is_too_long_gives_no_name(wording: str, length: int):
    with pytest.raises(SkillValidationError, match=f'{length} characters, at most 64 are allowed'):
        normalize_skill_name(wording)


@pytest.mark.parametrize(
    ('wording', 'name'),
    [
        ('short', 'short'),
        ('word ' * 13, '-'.join(['word'] * 13)),
        ('word ' * 14, '-'.join(['word'] * 13)),
        ('words ' * 14, '-'.join(['words'] * 10)),
        ('x' * 100, 'x' * 64),
        ('x' * 64 + '-y', 'x' * 64),
    ],
)
def test_a_long_name_is_cut_between_words_where_possible(wording: str, name: str):
    assert shorten_skill_name(wording) == name


@given(st.text() | st.text(alphabet='aB1- _é\u0301İΣσςﬁ\u1100\u1161', max_size=80))
@example('\u1100\u0301\u1161')
def test_what_is_made_of_any_text_is_a_valid_name_and_stays_the_same(text: str):
    try:
        name = shorten_skill_name(text)
    except SkillValidationError:
        assert not any(c.isalnum() for c in unicodedata.normalize('NFKC', text))
    else:
        assert check_skill_name(name) == name
        assert normalize_skill_name(name) == name


@pytest.mark.parametrize('name', ['a', '1', 'my-skill', 'a-1-b', 'x' * 64, 'café', '技能', 'мой-навык', 'straße'])
def test_a_name_of_lower_case_letters_digits_and_single_hyphens_is_valid(name: str):
    assert check_skill_name(name) == name


def test_names_are_compared_after_nfkc():
    assert check_skill_name('cafe\u0301') == 'café'
    assert check_skill_name('ﬁx') == 'fix'


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('', "it is empty. Use lower-case letters, digits and single hyphens, such as 'my-skill'."),
        (
            '_',
            "'_' is not a letter, digit or hyphen. Use lower-case letters, digits and single hyphens, such as 'my-skill'.",
        ),
        ('My Skill', "' ' is not a letter, digit or hyphen. Use 'my-skill'."),
        ('a_b', "'_' is not a letter, digit or hyphen. Use 'a-b'."),
        ('a\u200bb', "'\\u200b' is not a letter, digit or hyphen. Use 'a-b'."),
        ('MySkill', "its letters are not all lower-case. Use 'my-skill'."),
        ('-x', "a hyphen stands at an end or beside another. Use 'x'."),
        ('x-', "a hyphen stands at an end or beside another. Use 'x'."),
        ('a--b', "a hyphen stands at an end or beside another. Use 'a-b'."),
        ('x' * 65, f"it has 65 characters, at most 64 are allowed. Use '{'x' * 64}'."),
        ('a-' * 900, f"it has 1800 characters, at most 64 are allowed. Use '{'a-' * 31}a'."),
    ],
)
def test_the_message_for_an_invalid_name_says_why_and_what_would_be_right(name: str, message: str):
    with pytest.raises(SkillValidationError) as error:
        check_skill_name(name)
    shown, _, why = str(error.value).partition(' is not a skill name: ')
    assert why == message
    assert shown == repr(name) or (len(shown) == 82 and shown.endswith("…'"))


def test_a_text_that_takes_nfkc_quadratic_time_is_refused_at_once():
    text = 'a' + '\u0301\u0316' * 500_000
    started = time.perf_counter()
    for function in (normalize_skill_name, check_skill_name):
        with pytest.raises(SkillValidationError, match='1000001 characters'):
            function(text)
    assert time.perf_counter() - started < 5


def test_the_longest_name_is_the_limit_of_the_specification():
    assert MAX_NAME_LENGTH == 64


def test_each_rule_has_a_kebab_case_code_and_a_sentence():
    for code, rule in RULES.items():
        assert rule.code == code
        assert re.fullmatch(r'[a-z0-9]+(-[a-z0-9]+)*', code)
        assert re.fullmatch(r'[A-Z].*\.', rule.summary)


def test_the_table_gives_a_problem_its_severity():
    assert problem('name-mismatch', 'x/SKILL.md', 'Rename it.', 2) == SkillProblem(
        path='x/SKILL.md', code='name-mismatch', severity='warning', message='Rename it.', line=2
    )
    assert problem('description-missing', 'x/SKILL.md', 'Add one.').severity == 'error'
