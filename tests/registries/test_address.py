"""One address for every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from pydantic_ai_skills import GitSkillsRegistry, SkillValidationError, open_registry
from pydantic_ai_skills.registries.address import KINDS, SourceAddress, origin_of, parse_source
from tests.registries.repositories import Repository

DIGEST = 'ab' * 32


@pytest.mark.parametrize(
    ('text', 'kind', 'url', 'ref', 'path'),
    [
        ('acme/skills', 'git', 'https://github.com/acme/skills', None, ''),
        ('acme/skills@v1', 'git', 'https://github.com/acme/skills', 'v1', ''),
        ('https://github.com/acme/skills/tree/main/pdf', 'git', 'https://github.com/acme/skills', 'main', 'pdf'),
        ('https://host/acme/skills', 'git', 'https://host/acme/skills', None, ''),
        ('git@host:acme/skills.git@v1', 'git', 'git@host:acme/skills.git', 'v1', ''),
        ('ssh://git@host/skills', 'git', 'ssh://git@host/skills', None, ''),
        ('ext::sh -c x', 'git', 'ext::sh -c x', None, ''),
        ('./repository', 'git', './repository', None, ''),
        ('bare', 'git', 'bare', None, ''),
        ('./missing', 'git', './missing', None, ''),
        ('git+https://host', 'git', 'https://host', None, ''),
        ('./folder', 'folder', './folder', None, ''),
        ('folder', 'folder', 'folder', None, ''),
        ('folder+./repository', 'folder', './repository', None, ''),
        ('https://host/skills.zip', 'archive', 'https://host/skills.zip', None, ''),
        (f'https://host/x.tar.gz@sha256:{DIGEST}', 'archive', 'https://host/x.tar.gz', f'sha256:{DIGEST}', ''),
        (f'https://host/x.tgz#sha256={DIGEST.upper()}', 'archive', 'https://host/x.tgz', f'sha256:{DIGEST}', ''),
        (f'./pdf.skill@{DIGEST}', 'archive', './pdf.skill', f'sha256:{DIGEST}', ''),
        ('archive+https://host/download', 'archive', 'https://host/download', None, ''),
        ('https://skills.example.com', 'well-known', 'https://skills.example.com', None, ''),
        ('https://example.com/', 'well-known', 'https://example.com/', None, ''),
        ('https://e.com/.well-known/agent-skills', 'well-known', 'https://e.com/.well-known/agent-skills', None, ''),
        ('well-known+https://host/docs', 'well-known', 'https://host/docs', None, ''),
        ('s3://bucket/skills', 'objects', 's3://bucket/skills', None, ''),
        ('s3://bucket/skills.zip', 'objects', 's3://bucket/skills.zip', None, ''),
        ('gs://bucket', 'objects', 'gs://bucket', None, ''),
        ('mcp+https://host/mcp', 'mcp', 'https://host/mcp', None, ''),
        ('mcp+npx -y @acme/skills', 'mcp', 'npx -y @acme/skills', None, ''),
        ('marketplace+acme/plugins@v2', 'marketplace', 'https://github.com/acme/plugins', 'v2', ''),
    ],
)
def test_what_an_address_means(
    text: str, kind: str, url: str, ref: str | None, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'repository/.git').mkdir(parents=True)
    (tmp_path / 'bare/objects').mkdir(parents=True)
    (tmp_path / 'bare/HEAD').touch()
    assert parse_source(text) == SourceAddress(kind, url, ref, path)


@pytest.mark.parametrize('text', ['', ' ', 'nowhere', 'ftp://host/skills', 'ftp://host/skills.zip', 'a b'])
def test_what_is_not_an_address_is_answered_with_the_forms_there_are(text: str):
    with pytest.raises(SkillValidationError, match='is not an address of skills. Known forms: ') as told:
        open_registry(text)
    assert all(form in str(told.value) for kind in KINDS.values() for form in kind.forms)


def test_an_address_and_options_make_a_registry(repository: Repository, tmp_path: Path):
    registry = open_registry('acme/skills@v1', path='office', trusted=True, allowed_protocols=('https',))
    assert isinstance(registry, GitSkillsRegistry)
    assert (registry.url, registry.ref, registry.path) == ('https://github.com/acme/skills', 'v1', 'office')
    assert registry.trusted
    local = open_registry(repository.path, cache_dir=tmp_path / 'cache')
    assert [skill.name for skill in local.get_skills()] == ['pdf']


@pytest.mark.parametrize(
    ('url', 'origin'),
    [
        ('https://host:8443/x', 'https://host:8443'),
        ('http://host', 'http://host'),
        ('ssh://git@host/x', ''),
        ('s3://bucket', ''),
    ],
)
def test_a_token_can_be_bound_to_an_address_on_the_web(url: str, origin: str):
    assert origin_of(url) == origin


def test_each_kind_names_a_registry_of_that_kind():
    for kind, source in KINDS.items():
        module, _, name = source.registry.partition(':')
        assert getattr(__import__(f'pydantic_ai_skills.registries.{module}', fromlist=[name]), name).kind == kind
