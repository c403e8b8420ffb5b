"""Docs, help texts and messages are in plain English: none of the phrases below, which have to be read twice, is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

INSTEAD = {
    # what somebody is told, and what there is
    r'\b(is|are|was|were|be|been|being) told\b': 'say who gets which text',
    r'\btells? (of|spans)\b': 'reports, records, returns',
    r'\btold (of|with|as|like|about)\b': 'reported with, recorded as',
    r'\bwhat (there is|is there|else is there)\b': 'what exists',
    r'\bis there already\b': 'already exists',
    r'\b(is|are|was) there twice\b': 'two of the same name',
    r'\ball there (is|are)\b': 'everything',
    r'\bthere are no \w+ in\b': 'No … found in',
    r'\bthat there (is|are) not\b|\ba \w+ there is not\b': 'that does not exist',
    r'\bsay about them\b|\bsays of it\b|\bhas a say\b|\bhas no say\b|\bget a say\b': 'decides, influences',
    r'\b(for|with) want of\b': 'because … is missing',
    # whose it is
    r'\b(code|decision|executor|folder|function|lines|name|object|ranker|registry|rule|source)s? of (yours|theirs|ours)\b': 'your …',
    r'\b(executor|ranker|registry|search|source|skill|tool)s? of (your|their|its) own\b': 'your own …',
    # none, another, alike
    r'(?<!there )\b(is|are) (?-i:none)\b(?! of)': 'is invalid',
    r'\b(content|words|text|list) (is|are) (another|others)\b': 'has changed, differs',
    r'\bby every rule\b': 'against every rule',
    r'\bwhat the lock file has\b': 'what the lock file pins',
    r'\btake another\b': 'choose another',
    r'\bworks? alike\b': 'works the same way',
    r'\bnever a half\b': 'never a mixture',
    r'\bwill do( as well)?\b(?=[.,;:])': 'works',
    r'\bas it stands\b|\bas they stand\b': 'unchanged',
    r'\bby any way\b': 'in any way',
    # old-fashioned words
    r'\bmend(s|ed|ing)?\b': 'fix',
    r'\banew\b': 'again',
    r'\bbad news\b|\basked wrongly\b': 'problems found · usage error',
    r'\bso short a time\b': 'within … ns',
    r'\bfrom cheap to dear\b': 'from cheap to expensive',
    r'\bbelongs? into\b': 'belongs in',
    r'\bsome times\b': 'several times',
    r'\bfor ever\b(?!\s*\|)': 'forever',
    r'\bsomebody in the middle of\b|\bin the middle of it\b': 'while it is being written',
    r'\bI am a stand-in\b': 'No model is set, so …',
    r'\bgo(es)? on with\b|\bthe (run|conversation) goes on\b': 'continues with',
    r'\b(one|two|three|\d+) (skill|task|line|file|module|command|name|MiB|MB)s? a (skill|file|name|line|run|plugin)\b': 'per',
    r'\bWhere every\b.{0,40}\bpasses\b|\bWhat is told of\b': 'Single entry point for …',
}
"""Patterns of phrases that are not idiomatic, and what to write instead."""

CODE = re.compile(r'^( *)(`{3,}).*?^\1\2 *$|`[^`\n]+`|\]\([^)]*\)|<[^>\n]+>', re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """A page without code, links and tags."""
    return CODE.sub(lambda match: '\n' * match[0].count('\n') or '`…`', text)


def pages(site: Path) -> Iterator[tuple[str, str]]:
    """What people read: the README and its like, the documentation, and the reference that is made from docstrings."""
    for path in [*sorted(ROOT.glob('*.md')), *sorted((ROOT / 'docs').rglob('*.md'))]:
        yield path.relative_to(ROOT).as_posix(), prose(path.read_text('utf-8'))
    for path in sorted((site / 'api').rglob('index.html')):
        article = re.sub(r'<code.*?</code>', '`…`', path.read_text('utf-8'), flags=re.DOTALL)
        yield path.relative_to(site).as_posix(), unescape(re.sub(r'<[^>]+>', ' ', article))


def messages(site: Path) -> Iterator[tuple[str, str]]:
    """What programs print and models read: help texts, messages, problems, and the skill about this package."""
    for path in sorted((ROOT / 'pydantic_ai_skills').rglob('*.py')):
        tree = ast.parse(path.read_text('utf-8'))
        comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        comments -= {id(text) for text in help_texts(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
                yield f'{path.relative_to(ROOT)}:{node.lineno}', prose(node.value)
    for path in sorted((ROOT / 'pydantic_ai_skills/.agents').rglob('*.md')):
        yield path.relative_to(ROOT).as_posix(), prose(path.read_text('utf-8'))


def help_texts(tree: ast.Module) -> Iterator[ast.expr]:
    """The docstrings of the functions in a module that are commands."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any('command' in ast.unparse(each) for each in node.decorator_list):
            yield from (line.value for line in node.body[:1] if isinstance(line, ast.Expr))


def found(text: str) -> Iterator[tuple[str, str]]:
    flat = re.sub(r'\s+', ' ', text)
    for pattern, instead in INSTEAD.items():
        for match in re.finditer(pattern, flat, re.IGNORECASE):
            yield flat[max(0, match.start() - 40) : match.end() + 30], instead


@pytest.mark.parametrize('texts', [pages, messages])
def test_no_phrase_has_to_be_read_twice(texts: Callable[[Path], Iterator[tuple[str, str]]], site: Path) -> None:
    assert [(name, *phrase) for name, text in texts(site) for phrase in found(text)] == []


@pytest.mark.parametrize(
    'text',
    [
        'What is told of loads, reads and runs, and who is told.',
        'Where every load, read and run passes.',
        'Whether something changed so short a time ago that somebody may be in the middle of it.',
        'an option is none',
        'Check skills by every rule.',
        'There are no skills in ./.',
        "'skills/greeter' is there already.",
        'Fetch what the lock file has.',
        'A broken skill is told with its file and line.',
        '1 bad news · 2 asked wrongly · 3 failed',
        'a skill whose content is another is left out',
        'When to take another',
        'I am a stand-in without a model.',
    ],
)
def test_such_phrases_are_found(text: str) -> None:
    assert list(found(text)) != []
