"""The command line of `make published`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic_ai_skills import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor

from .measure import Executor, Report, measure

INTERPRETERS = ('python', 'node', 'bash')
LOCAL_WARNING = 'Without a sandbox: each script is started with --help as you, with your files and network in reach.'


def main(argv: Sequence[str] | None = None) -> int:
    """Measure a collection and print a table; 1 if a script starts plainly and not by the tool, or leaves files."""
    parser = argparse.ArgumentParser(prog='make published', description=__doc__)
    parser.add_argument('collection', type=Path, help='the clone of a collection; it is copied, not written to')
    parser.add_argument('--local', action='store_true', help="also run strangers' code without a sandbox")
    parser.add_argument('--python', type=Path, help='the Python whose packages the scripts may import')
    parser.add_argument('--timeout', type=float, default=10, help='seconds for each start (10)')
    parser.add_argument('--jobs', type=int, default=2, help='how many programs to start at a time (2)')
    options = parser.parse_args(argv)
    if not options.collection.is_dir():
        parser.error(f'{options.collection} is not a folder')
    with tempfile.TemporaryDirectory(prefix='published-') as folder:
        scratch = Path(os.path.realpath(folder))
        (scratch / 'home').mkdir()
        executors: dict[str, Executor] = {
            'sandbox': BubblewrapSkillScriptExecutor(
                timeout=options.timeout, python_executable=options.python, read_only=[scratch]
            )
        }
        if options.local:
            print(LOCAL_WARNING, file=sys.stderr)
            executors['local'] = LocalSkillScriptExecutor(
                timeout=options.timeout, python_executable=options.python, env={'HOME': str(scratch / 'home')}
            )
        report = measure(options.collection, scratch, executors, jobs=options.jobs)
    print('\n'.join(lines(options.collection.name, report)))
    print(f'\n{row(options.collection.name, report)}')
    return int(any(any(each.missing()) or each.left for each in report.measured))


def lines(name: str, report: Report) -> Iterator[str]:
    """The report as Markdown."""
    codes = ', '.join(f'{code} {count}' for code, count in report.problems.most_common()) or 'none'
    yield f'## {name}\n'
    yield f'{report.loaded} of {report.skills} skills load, with {report.offered} scripts. Problems: {codes}.\n'
    yield '| where | program | files | start plainly | start by the tool |\n|---|---|--:|--:|--:|'
    for measured in report.measured:
        for interpreter in INTERPRETERS:
            files, plainly, by_tool = measured.counts(interpreter)
            if files:
                yield f'| {measured.where} | {interpreter} | {files} | {plainly} | {by_tool} |'
    for measured in report.measured:
        yield from _list(f'start plainly and not by the tool ({measured.where})', list(measured.missing()))
        lacking = [f'{what}: {", ".join(names)}' for what, names in measured.lacking().items()]
        yield from _list(f'what the others lack ({measured.where})', lacking)
        yield from _list(f'files left in folders of skills ({measured.where})', measured.left)


def row(name: str, report: Report) -> str:
    """The report as one row of the table in the documentation."""
    cells = [name, f'{report.loaded} of {report.skills}']
    for measured in report.measured:
        starts = [measured.counts(interpreter)[1:] for interpreter in INTERPRETERS]
        cells.append(' · '.join(f'{plainly} → {by_tool}' if plainly or by_tool else '–' for plainly, by_tool in starts))
    return f'| {" | ".join([*cells, str(sum(len(measured.left) for measured in report.measured))])} |'


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    yield f'\n{len(items)} · {title}'
    yield from (f'- {item}' for item in items)


if __name__ == '__main__':
    sys.exit(main())
