"""What has to agree before a version is released. `make test-release` installs and tries the distributions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['project']
CHANGELOG = (ROOT / 'CHANGELOG.md').read_text('utf-8')
CATEGORIES = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']
VERSION = re.compile(r'^## \[(?P<version>\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$', re.MULTILINE)


def test_the_newest_version_in_the_changelog_is_the_one_of_the_package():
    newest = VERSION.search(CHANGELOG)
    assert newest is not None
    assert newest['version'] == PROJECT['version']


def test_every_section_of_the_changelog_is_a_version_with_a_date_or_unreleased():
    headings = re.findall(r'^## .*$', CHANGELOG, re.MULTILINE)
    assert [line for line in headings if line != '## [Unreleased]' and not VERSION.fullmatch(line)] == []


def test_every_version_in_the_changelog_has_the_categories_once_and_in_order():
    for section in re.split(r'^## ', CHANGELOG, flags=re.MULTILINE)[1:]:
        found = re.findall(r'^### (.*)$', section, re.MULTILINE)
        assert found == [category for category in CATEGORIES if category in found]


def test_the_documented_hook_is_the_one_of_this_version():
    assert f'rev: v{PROJECT["version"]}\n' in (ROOT / 'docs/cli.md').read_text('utf-8')


@pytest.mark.parametrize('file', ['LICENSE', 'SECURITY.md', 'CHANGELOG.md', 'pydantic_ai_skills/py.typed'])
def test_a_release_has(file: str):
    assert (ROOT / file).is_file()


def test_the_security_policy_names_the_supported_version_and_no_mail_address_and_its_links_resolve():
    policy = (ROOT / 'SECURITY.md').read_text('utf-8')
    series = PROJECT['version'].rpartition('.')[0]
    assert f'| {series}.x | yes |' in policy
    assert re.findall(r'\S+@\S+\.\w+', policy) == []
    assert [link for link in re.findall(r'\]\(([^)]+)\)', policy) if not (ROOT / link).is_file()] == []
