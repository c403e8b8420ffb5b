from __future__ import annotations

import pytest

from pydantic_ai_skills import SkillValidationError
from pydantic_ai_skills.registries import GitCloneOptions
from pydantic_ai_skills.registries.git.options import Selection, check_options


@pytest.mark.parametrize(
    ('options', 'arguments'),
    [
        (GitCloneOptions(), ('--depth=1',)),
        (GitCloneOptions(depth=5, single_branch=True), ('--depth=5',)),
        (GitCloneOptions(multi_options=['--depth 3', '--quiet', '-4']), ('-4', '--depth=3')),
        (GitCloneOptions(multi_options=['--depth', '3', '--no-tags']), ('--no-tags', '--depth=3')),
        (GitCloneOptions(multi_options=['--shallow-since=2026-01-01']), ('--shallow-since=2026-01-01',)),
        (GitCloneOptions(multi_options=['--filter=tree:0', '--sparse']), ('--filter=tree:0', '--depth=1')),
        (GitCloneOptions(git_options={'no_tags': True, 'depth': 2, 'q': True}), ('--no-tags', '--depth=2')),
        (
            GitCloneOptions(git_options={'shallow_exclude': ['a', 'b'], 'tags': False, 'bare': None}),
            ('--shallow-exclude=a', '--shallow-exclude=b'),
        ),
    ],
)
def test_options_as_git_fetch_gets_them(options: GitCloneOptions, arguments: tuple[str, ...]):
    assert check_options(options, allow_unsafe=False).arguments == arguments


@pytest.mark.parametrize(
    'options',
    [
        GitCloneOptions(branch='dev'),
        GitCloneOptions(multi_options=['--branch=dev']),
        GitCloneOptions(multi_options=['-b dev']),
        GitCloneOptions(git_options={'b': 'dev'}),
    ],
)
def test_a_branch_can_be_given_in_every_way(options: GitCloneOptions):
    assert check_options(options, allow_unsafe=False).branch == 'dev'


@pytest.mark.parametrize(
    'options',
    [
        GitCloneOptions(env={'GIT_SSH_COMMAND': 'x'}),
        GitCloneOptions(env={'LD_PRELOAD': 'x'}),
        GitCloneOptions(env={'PATH': 'x'}),
        GitCloneOptions(multi_options=['--upload-pack=x']),
        GitCloneOptions(multi_options=['-u x']),
        GitCloneOptions(multi_options=['-c core.sshCommand=x']),
        GitCloneOptions(multi_options=['--config', 'core.hooksPath=x']),
        GitCloneOptions(multi_options=['--recurse-submodules']),
        GitCloneOptions(multi_options=['--template=x']),
        GitCloneOptions(multi_options=['--depth=x']),
        GitCloneOptions(git_options={'upload_pack': 'x'}),
        GitCloneOptions(git_options={'c': 'protocol.ext.allow=always'}),
    ],
)
def test_what_would_weaken_the_rest_needs_a_word(options: GitCloneOptions):
    with pytest.raises(SkillValidationError, match='allow_unsafe_options=True'):
        check_options(options, allow_unsafe=False)
    check_options(options, allow_unsafe=True)


def test_what_is_allowed_reaches_git():
    options = GitCloneOptions(
        env={'GIT_SSH_COMMAND': 'x', 'HTTPS_PROXY': 'y'},
        multi_options=['-c http.sslVerify=false', '--upload-pack=z', '--server-option', '-c'],
    )
    checked = check_options(options, allow_unsafe=True)
    assert checked.env == {'GIT_SSH_COMMAND': 'x', 'HTTPS_PROXY': 'y'}
    assert checked.config == {'http.sslVerify': 'false'}
    assert checked.arguments == ('--upload-pack=z', '--server-option', '-c', '--depth=1')


@pytest.mark.parametrize(
    ('options', 'reason'),
    [
        (GitCloneOptions(depth=0), 'depth must be 1 or more'),
        (GitCloneOptions(branch='-x'), 'not the name of a branch'),
        (GitCloneOptions(multi_options=['x']), "'x' in clone_options is not an option"),
        (GitCloneOptions(multi_options=['--branch']), 'not the name of a branch'),
    ],
)
def test_what_is_no_option(options: GitCloneOptions, reason: str):
    with pytest.raises(SkillValidationError, match=reason):
        check_options(options, allow_unsafe=True)


def test_sparse_paths_are_folders_or_patterns():
    selection = Selection(path='', max_depth=3, sparse_paths=('/b/*', 'a/', 'teams/*/skills', 'a'))
    assert selection.sparse_paths == ('a', 'b', 'teams/*/skills')
    inside = ['a/x', 'a', 'b/c/d', 'teams/x/skills/y/SKILL.md']
    assert [path for path in [*inside, 'ab/x', 'c', 'teams/x/y'] if selection.is_sparse(path)] == inside
    assert Selection(path='', max_depth=None, sparse_paths=('.',)).is_sparse('anything')
    with pytest.raises(SkillValidationError, match='not a folder in the source'):
        Selection(path='', max_depth=None, sparse_paths=('../x',))
