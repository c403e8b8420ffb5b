"""Names and descriptions of skills in ordinary English, put together from lists of words at random.

The words were chosen without a look at what they cost. The same seed always makes the same set.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

CHARS = 128
"""How long each description is."""

TEMPLATES = (
    '{does} {things} {how} and {also}. Use when {who} {asks} {task}.',
    '{does} {things} {how}. Use when {who} {asks} {task}, or mentions {others}.',
    '{does} {things} and {others} and {also}. Use when {who} {asks} {task}.',
    '{does} {things} {how}, then {also}. Use when {task} is needed by {who}.',
    'How to work with {things} {how}. Use when {who} {asks} {task} or {others}.',
)
DOES = (
    *('Analyzes', 'Builds', 'Checks', 'Cleans up', 'Compares', 'Converts', 'Creates', 'Debugs', 'Deploys', 'Drafts'),
    *('Edits', 'Explains', 'Extracts data from', 'Fills in', 'Formats', 'Generates', 'Maintains', 'Merges', 'Migrates'),
    *('Monitors', 'Optimizes', 'Organizes', 'Plans', 'Prepares', 'Proofreads', 'Refactors', 'Reviews', 'Schedules'),
    *('Searches', 'Sorts', 'Summarizes', 'Tests', 'Tracks', 'Translates', 'Validates', 'Writes'),
)
THINGS = (
    *('API clients', 'blog posts', 'bug reports', 'budgets', 'calendars', 'charts', 'commit messages', 'contracts'),
    *('cover letters', 'dashboards', 'database schemas', 'design documents', 'emails', 'expense reports', 'forms'),
    *('images', 'incident reports', 'interviews', 'invoices', 'job postings', 'landing pages', 'legal documents'),
    *('log files', 'medical records', 'meeting notes', 'newsletters', 'PDF files', 'photographs', 'presentations'),
    *('press releases', 'product descriptions', 'pull requests', 'purchase orders', 'recipes', 'release notes'),
    *('research papers', 'resumes', 'sales figures', 'screenshots', 'shell scripts', 'spreadsheets', 'SQL queries'),
    *('subtitles', 'support tickets', 'surveys', 'tax returns', 'test suites', 'travel plans', 'videos', 'web pages'),
)
HOW = (
    *('according to the style guide of the company', 'automatically', 'for a technical audience', 'from scratch'),
    *('in several languages', 'line by line', 'step by step', 'to a high standard', 'using best practices'),
    *('with a consistent structure', 'with templates', 'without losing any details', 'with the tools of the team'),
)
ALSO = (
    *('adds charts', 'explains every change', 'fixes common mistakes', 'gives a short summary', 'keeps a history'),
    *('lists open questions', 'points out missing information', 'reports problems', 'sends them to reviewers'),
    *('saves the result as a document', 'stores them in the archive', 'suggests improvements', 'updates the index'),
)
WHO = ('a colleague', 'a customer', 'somebody', 'the team', 'the user')
ASKS = ('asks about', 'asks for', 'needs', 'talks about', 'wants', 'wants help with')
TASK = (
    *('a better version', 'a deadline', 'a first draft', 'a professional layout', 'a quick overview'),
    *('a second opinion', 'a weekly report', 'an audit', 'an import or export', 'cleaning up old files'),
    *('something to show to others',),
)


def described(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """So many different names, each with a description of 128 characters."""
    random, names = Random(seed), set[str]()
    while len(names) < count:
        things, others = random.sample(THINGS, 2)
        does = random.choice(DOES)
        name = f'{does.split()[0]}-{things}'.lower().replace(' ', '-')
        text = _description(random, does=does, things=things, others=others)
        if len(text) == CHARS and name not in names:
            names.add(name)
            yield name, text


def _description(random: Random, **words: str) -> str:
    choices = {'how': HOW, 'also': ALSO, 'who': WHO, 'asks': ASKS, 'task': TASK}
    return random.choice(TEMPLATES).format(**words, **{name: random.choice(each) for name, each in choices.items()})
