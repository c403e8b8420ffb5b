"""Searching skills by their words."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydantic_ai_skills import FullTextRanker, Skill, SkillError
from pydantic_ai_skills.catalog.fulltext import MAX_RANKED

SKILLS = [
    Skill('pdf-forms', 'Fill in PDF forms. Use for tax and insurance papers.', '# Finding the fields'),
    Skill('pdf-merge', 'Merge several PDF files into one.', '# Order of pages'),
    Skill('csv-report', 'Summarize tables as charts.', '# Grouping rows', metadata={'tags': ['finance', 'excel']}),
    Skill('k8s-deploy', 'Deploy containers to Kubernetes clusters.', '# Rollbacks', metadata={'category': 'devops'}),
    Skill('haiku', 'Write short poems.', '# Syllables', metadata={'keywords': 'poetry, verse', 'tags': 7}),
    Skill('wörter', 'Übersetzt Wörter. 翻译文档。', ''),
]


@pytest.fixture(scope='module')
def ranker() -> FullTextRanker:
    ranker = FullTextRanker()
    ranker.update(SKILLS, ())
    return ranker


@pytest.mark.parametrize(
    ('query', 'first'),
    [
        ('tax papers', 'pdf-forms'),
        ('combine or merge my pdf files please', 'pdf-merge'),
        ('merging', 'pdf-merge'),
        ('kubernets', 'k8s-deploy'),
        ('kube', 'k8s-deploy'),
        ('devops', 'k8s-deploy'),
        ('rollback', 'k8s-deploy'),
        ('finance', 'csv-report'),
        ('poetry', 'haiku'),
        ('syllable', 'haiku'),
        ('7', 'haiku'),
        ('csvreport', 'csv-report'),
        ('worter', 'wörter'),
        ('文档', 'wörter'),
        ('the skill for my poems', 'haiku'),
        ('!?', None),
        ('quantum', None),
        ('"pdf', 'pdf-merge'),
        ('merge AND NOT (pdf', 'pdf-merge'),
        ('words: x OR y*', None),
    ],
)
def test_the_best_skill_comes_first(ranker: FullTextRanker, query: str, first: str | None):
    assert next(iter(ranker.rank(query, 10)), None) == first


@pytest.mark.parametrize(
    ('query', 'found'),
    [
        pytest.param('GitHub', ['github-prs'], id='a word of the index'),
        pytest.param('gitHubs', ['github-prs'], id='in another form'),
        pytest.param('PDFs', ['pages'], id='the plural of an abbreviation'),
        pytest.param('rebaseGitCommits', ['git-basics'], id='several words'),
    ],
)
def test_a_word_with_capitals_in_it_is_one_word_if_it_is_known(query: str, found: list[str]):
    ranker = FullTextRanker()
    skills = [
        Skill('git-basics', 'Commit and rebase with git.', ''),
        Skill('github-prs', 'Review pull requests.', ''),
        Skill('pages', 'Merge a PDF with another.', ''),
        Skill('fs', 'Helpers, among them pd.', ''),
    ]
    ranker.update(skills, ())
    assert ranker.rank(query, 5) == found


@pytest.mark.parametrize(
    ('query', 'first'),
    [
        ('เอกสาร', 'thai-translation'),
        ('ช่วยแปลภาษาหน่อย', 'thai-translation'),
        ('รายงาน', 'thai-report'),
        ('การขาย', 'thai-report'),
        ('ເອກະສານ', 'lao'),
        ('ဘာသာပြန်', 'burmese'),
        ('ឯកសារ', 'khmer'),
        ('अनुवाद', 'hindi-translation'),
        ('रिपोर्ट', 'hindi-report'),
        ('रिपोट', 'hindi-report'),
    ],
)
def test_words_of_scripts_without_spaces_and_with_marks_are_found(query: str, first: str):
    descriptions = {
        'thai-translation': 'แปลเอกสารเป็นภาษาไทยและภาษาอังกฤษ',
        'thai-report': 'สร้างรายงานการขายประจำเดือน',
        'lao': 'ແປເອກະສານເປັນພາສາລາວ',
        'burmese': 'စာရွက်စာတမ်းများကိုဘာသာပြန်ပါ',
        'khmer': 'បកប្រែឯកសារជាភាសាខ្មែរ',
        'hindi-translation': 'दस्तावेज़ का अनुवाद करें',
        'hindi-report': 'बिक्री की रिपोर्ट बनाएं',
    }
    ranker = FullTextRanker()
    ranker.update([Skill(name, text, '') for name, text in descriptions.items()], ())
    assert ranker.rank(query, 5)[:1] == [first]


@pytest.mark.parametrize('query', ['λόγος', 'ΛΌΓΟΣ'])
def test_a_greek_word_is_no_mistyping_of_itself(query: str):
    ranker = FullTextRanker()
    ranker.update([Skill('speech', 'Ο λόγος.', ''), Skill('other', 'Του λόγου.', '')], ())
    assert ranker.rank(query, 5) == ['speech']


def test_a_name_counts_more_than_a_description():
    ranker = FullTextRanker()
    ranker.update([Skill('other', 'About release notes.', ''), Skill('release-notes', 'About changes made.', '')], ())
    assert ranker.rank('release notes', 5) == ['release-notes', 'other']


def test_skills_that_fit_alike_are_sorted_by_name(ranker: FullTextRanker):
    ranker = FullTextRanker()
    ranker.update([Skill(name, 'Same words.', '') for name in ('c', 'a', 'b')], ())
    assert ranker.rank('words', 2) == ['a', 'b']


def test_a_frequent_word_adds_to_the_rank_of_what_rare_ones_choose():
    ranker = FullTextRanker()
    filler = [Skill(f'filler-{number:05}', 'Handles invoices.', '') for number in range(MAX_RANKED + 1)]
    skills = [Skill('a-rare', 'Handles zebras.', ''), Skill('b-both', 'Handles zebras, invoices.', '')]
    ranker.update([*filler, *skills], ())
    assert ranker.rank('zebra invoice', 5) == ['b-both', 'a-rare']
    assert len(ranker.rank('invoice', 5)) == 5


def test_the_closest_names_are_those_that_are_written_alike(ranker: FullTextRanker):
    assert next(iter(ranker.close_to('pdf-form'))) == 'pdf-forms'
    assert next(iter(ranker.close_to('pdf_mreg'))) == 'pdf-merge'
    assert list(ranker.close_to('zzz')) == []


def test_half_a_character_hides_no_skill():
    ranker = FullTextRanker()
    ranker.update(
        [Skill('emoji', 'Half \ud83d of it.', '', metadata={'tags': ['\ud83d']}), Skill('whole', 'All.', '')], []
    )
    assert [ranker.rank(query, 5) for query in ('half', 'whole')] == [['emoji'], ['whole']]


def test_skills_of_which_no_word_is_known_may_change():
    ranker = FullTextRanker()
    letter = '\u19b0'  # to Python a letter, to SQLite none
    for description in (letter, 'Found now.'):
        ranker.update([Skill(letter, description, '')], [])
    assert ranker.rank('found', 5) == [letter]


def test_an_update_that_fails_leaves_the_index_as_it_was():
    ranker = FullTextRanker()
    ranker.update([Skill('pdf', 'Old.', '')], [])
    changed = [Skill('pdf', 'New.', ''), Skill('csv', 'One.', ''), Skill('csv', 'Another.', '')]
    with pytest.raises(sqlite3.IntegrityError):
        ranker.update(changed, [])
    assert [ranker.rank(query, 5) for query in ('old', 'new', 'one')] == [['pdf'], [], []]
    ranker.update(changed[:2], [])
    assert [ranker.rank(query, 5) for query in ('old', 'new', 'one')] == [[], ['pdf'], ['csv']]


def test_without_full_text_search_in_sqlite_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr('pydantic_ai_skills.catalog.fulltext._SCHEMA', 'CREATE VIRTUAL TABLE texts USING fts55(words)')
    with pytest.raises(SkillError, match=r'SQLite here has no FTS5 \(no such module: fts55\)'):
        FullTextRanker()


VERSIONS = st.dictionaries(
    st.sampled_from(['alpha', 'beta-test', 'gamma', 'delta']),
    st.lists(st.sampled_from(['red', 'reds', 'green', 'blue', 'table', 'a']), min_size=1, max_size=4).map(' '.join),
)


@settings(max_examples=50)
@given(st.lists(VERSIONS, min_size=2, max_size=5))
def test_an_index_that_was_updated_answers_like_a_new_one(versions: list[dict[str, str]]):
    updated = FullTextRanker()
    before: dict[str, Skill[Any]] = {}
    for version in versions:
        skills = {
            name: before[name] if name in before and before[name].description == text else Skill(name, text, '')
            for name, text in version.items()
        }
        changed = [skill for name, skill in skills.items() if before.get(name) is not skill]
        updated.update(changed, before.keys() - skills.keys())
        before = skills
    new = FullTextRanker()
    new.update(list(before.values()), ())
    for query in ('red', 'green blue', 'tabl', 'gren', 'beta', 'a', 'test table'):
        assert updated.rank(query, 3) == new.rank(query, 3)
