"""The page is one file that needs nothing else, shows everything, and lets no text act."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pydantic_ai_skills.evals import EvalReport, html_page, is_of_stand_in
from tests.evals.reports import MATRIX, REPORT, query, triggers

ATTACKS = (
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    '</title></style></pre><iframe src="https://evil.example">',
    "' onmouseover='alert(1)",
    '<!-- --> <![CDATA[ ]]> &lt;script&gt;',
    '\x00\x1b[31m\u202e\ud800',
)


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ''
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile(attack: str) -> EvalReport:
    """A report in which every text that comes from skills, cases and models attacks."""
    outcome = REPORT.outcome
    assert outcome is not None
    results = [
        replace(
            result,
            prompt=attack,
            skill=attack,
            runs=tuple(
                replace(
                    run,
                    output=attack,
                    error=attack,
                    loaded=(attack,),
                    checks=tuple(replace(check, text=attack, evidence=attack) for check in run.checks),
                )
                for run in result.runs
            ),
        )
        for result in outcome.results
    ]
    skills = [replace(each, skill=attack) for each in outcome.skills]
    matrix = replace(MATRIX, expected=(attack, 'none'), loaded=(attack, 'zip', 'none'))
    return replace(
        REPORT,
        model=attack,
        judge=attack,
        baseline=attack,
        trigger=triggers(query(attack, attack, attack, error=attack), matrix=matrix),
        outcome=replace(outcome, results=tuple(results), skills=tuple(skills)),
        problems=(attack,),
    )


@pytest.mark.parametrize('attack', ATTACKS)
def test_no_text_becomes_markup(attack: str):
    plain, attacked = Elements(html_page(hostile('plain'))), Elements(html_page(hostile(attack)))
    assert [tag for tag, _ in attacked.tags] == [tag for tag, _ in plain.tags]
    assert [set(attributes) for _, attributes in attacked.tags] == [set(attributes) for _, attributes in plain.tags]
    shown = re.sub('[\x00\x1b\u202e\ud800]', lambda match: match[0].encode('unicode_escape').decode(), attack)
    assert attacked.text.count(shown) == plain.text.count('plain') > 20
    attacked.text.encode()


def test_it_needs_no_other_file_and_runs_nothing():
    page = html_page(REPORT)
    elements = Elements(page)
    assert {'script', 'link', 'img', 'iframe', 'a'}.isdisjoint(tag for tag, _ in elements.tags)
    assert [
        name for _, attributes in elements.tags for name in attributes if name.startswith(('on', 'src', 'href'))
    ] == []
    assert re.findall(r'(?:https?:)?//|url\(|@import', page) == []
    assert (
        'meta',
        {'http-equiv': 'Content-Security-Policy', 'content': "default-src 'none'; style-src 'unsafe-inline'"},
    ) in elements.tags


def test_it_shows_with_against_without():
    page = html_page(REPORT)
    for style, share in (('with_skill', '50.0%'), ('without_skill', '100.0%')):
        assert f'<rect width="{share}" height="100%" class="{style}"></rect>' in page
    assert 'with_skill: 340 ± 20' in page
    assert '<td>-0.50</td><td>-1.77 to +0.77</td><td>+120</td><td>+0.25</td><td>unclear</td>' in page


def test_it_shows_the_matrix_with_what_was_right_missed_and_wrong():
    page = html_page(REPORT)
    for style, count, title in (('right', 2, 'pdf → pdf'), ('wrong', 1, 'pdf → zip'), ('missed', 1, 'pdf → none')):
        assert re.search(f'<td class="{style}" style="--share: 0.[25][05]" title="{title}">{count}</td>', page)
    assert '<td class="right" style="--share: 1.00" title="none → none">2</td>' in page


def test_cases_are_folded_with_their_checks_and_evidence():
    text = Elements(html_page(REPORT)).text
    for shown in (
        'There is a file.',
        'There are: <script>alert(1)</script>',
        'ModelError: no',
        '<i>late</i>',
        'Filled.',
    ):
        assert shown in text
    assert '<details open' not in html_page(REPORT)


def test_a_part_that_was_not_run_is_not_shown():
    queries, tasks = html_page(replace(REPORT, outcome=None)), html_page(replace(REPORT, trigger=None))
    assert ('Is the right skill loaded?' in queries, 'Does the skill help?' in queries) == (True, False)
    assert ('Is the right skill loaded?' in tasks, 'Does the skill help?' in tasks) == (False, True)


def test_a_report_without_any_run_is_a_page():
    assert REPORT.outcome is not None
    empty = replace(REPORT, trigger=None, outcome=replace(REPORT.outcome, results=(), skills=()))
    assert 'What the skill changes' not in html_page(empty)


@pytest.mark.parametrize(
    ('model', 'is_stand_in'), [('stand-in', True), ('function:stand-in', True), ('openai:x', False)]
)
def test_figures_of_the_stand_in_are_said_to_be_that(model: str, is_stand_in: bool):
    report = replace(REPORT, model=model)
    assert is_of_stand_in(report) is is_stand_in
    assert ('It is not a model, and its figures say nothing about one.' in html_page(report)) is is_stand_in
