"""The prompts that the chat in the browser suggests, and what the stand-in for a model does with them."""

from __future__ import annotations

import re

from offline import Call

CONVERT, REPORT, FORM = ({'skill_name': name} for name in ('unit-converter', 'csv-report', 'fill-form'))
SUMMARY = {'_': ['assets/sales.csv'], 'value': 'revenue', 'group-by': 'region'}
VALUES = ['name=Ada Byron', 'trip=Lisbon', 'from=2026-11-03', 'until=2026-11-06', 'total=412.50']
CLAIM = ['fields.json', 'claim.txt', '--set', *VALUES]
PROMPTS = (
    'What are 10 yd in m?',
    'Which region sold the most?',
    'Fill in an expense claim: Ada Byron, Lisbon, 3 to 6 November 2026, 412.50 euros.',
)


def choose(question: str) -> list[Call]:
    """The calls for a question like one of the prompts; none for another."""
    if asked := re.search(r'(-?[\d.]+) (\w+) (?:in|to) (\w+)\?', question):
        return [('load_skill', CONVERT), run(CONVERT, 'convert', [*asked.groups()])]
    if 'region' in question:
        return [('load_skill', REPORT), run(REPORT, 'summarize', SUMMARY)]
    if 'expense claim' in question:
        steps = run(FORM, 'list_fields', ['expense-claim.txt']), run(FORM, 'fill_form', CLAIM)
        return [('load_skill', FORM), *steps]
    return []


def run(skill: dict[str, str], script: str, args: object) -> Call:
    """The call of a script."""
    return 'run_skill_script', {**skill, 'script_name': script, 'args': args}
