"""What mkdocs does besides building pages.

It lists the names of the API, highlights frontmatter, and publishes each page as Markdown, which agents read better
than HTML.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from skill_md_lexer import use_it

from pydantic_ai_skills import exceptions

use_it()

_pages: list[Page] = []

_SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
_NAME = re.compile(r'^::: pydantic_ai_skills\.(\w+)$', re.MULTILINE)
_TITLE = re.compile(r'^# (.+)$', re.MULTILINE)
_LINK = re.compile(r'\[([^\]]+)\]\([^)]*\)')


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Let pages link to the list of pages, which is written at the end."""
    files.append(File.generated(config, 'llms.txt', content=''))
    return files


def on_nav(nav: Navigation, /, *, config: MkDocsConfig, files: Files) -> None:
    """Remember the pages in the order a reader has them."""
    _pages[:] = nav.pages


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the names of the API, and the changelog, whose links start at the root of the repository."""
    if page.file.src_uri == 'changelog.md':
        return _with_snippets(markdown).replace('](docs/', '](')
    return markdown.replace('<!-- names -->', _names())


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write each page as Markdown, `llms.txt` with a line a page, and `llms-full.txt` with all of them."""
    site, lines, texts = Path(config.site_dir), list[str](), list[str]()
    for page in _pages:
        text = _with_snippets(page.markdown or '')
        (site / page.file.src_uri).write_text(text, 'utf-8')
        texts.append(text)
        title = cast(str, page.title)  # pyright: ignore[reportUnknownMemberType] - a property of mkdocs' own making
        lines.append(f'- [{title}]({page.file.src_uri}): {page.meta.get("description") or _first_sentence(text)}')
    head = f'# {config.site_name}\n\n> {config.site_description}\n'
    (site / 'llms.txt').write_text('\n'.join((head, '## Pages\n', *lines, '')), 'utf-8')
    (site / 'llms-full.txt').write_text('\n\n'.join((head, *texts)), 'utf-8')


def _with_snippets(text: str) -> str:
    return _SNIPPET.sub(lambda match: Path(match[1]).read_text('utf-8').rstrip(), text)


def _names() -> str:
    """A table of all public names, with a row for each page of the reference."""
    rows = ['| page | names |', '|---|---|']
    for file in (page.file for page in _pages if page.file.src_uri.startswith('api/')):
        text = file.content_string
        names = [entry for name in _NAME.findall(text) for entry in _entries(name)]
        shown = ', '.join(f'[`{name.rpartition(".")[2]}`][pydantic_ai_skills.{name}]' for name in names)
        title = _TITLE.findall(text)[0]
        rows.append(f'| [{title}]({file.src_uri}) | {shown} |')
    return '\n'.join(rows)


def _entries(name: str) -> list[str]:
    """What a name stands for: itself, or every error."""
    return [f'{name}.{error}' for error in exceptions.__all__] if name == 'exceptions' else [name]


def _first_sentence(text: str) -> str:
    """What a page that has no description begins with: the first sentence that is no heading, list or table."""
    paragraphs = (' '.join(paragraph.split()) for paragraph in text.split('\n\n'))
    plain = next((paragraph for paragraph in paragraphs if re.match(r'[\w\[]', paragraph)), '')
    return _LINK.sub(r'\1', re.split(r'(?<=[.?]) ', plain)[0])
