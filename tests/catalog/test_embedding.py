"""Searching skills by meaning: with a model of our own, whose words of one concept mean the same."""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import sqlite3
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group, sleep_forever, to_thread
from pydantic_ai import Agent
from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.embeddings.result import EmbedInputType
from pydantic_ai.models import override_allow_model_requests
from pydantic_ai.providers.openai import OpenAIProvider

from pydantic_ai_skills import EmbeddingRanker, Skill, SkillsCapability, SkillsToolset
from pydantic_ai_skills.catalog.embedding import MAX_BATCH, MAX_QUERIES, fuse
from pydantic_ai_skills.filesystem.user_dirs import CACHE_VARIABLE
from tests.catalog.paraphrases import REQUESTS, SKILLS
from tests.conversations import ScriptedModel
from tests.embedders import ConceptModel, concepts_of

pytestmark = pytest.mark.anyio

FEW: list[Skill[Any]] = [
    Skill('invoice-writer', 'Create an invoice for a payment.', '', metadata={'tags': ['accounting']}),
    Skill('image-resize', 'Resize images.', ''),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder."""
    folder = tmp_path / 'cache'
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


def searching(
    model: EmbeddingModel, skills: Sequence[Skill[Any]] = FEW, **options: Any
) -> tuple[SkillsToolset[Any], EmbeddingRanker]:
    ranker = EmbeddingRanker(model, **options)
    return SkillsToolset(skills=skills, ranker=ranker), ranker


def found(toolset: SkillsToolset[Any], query: str, limit: int = 5) -> list[str]:
    return [skill.name for skill in toolset.search(query, limit)]


def found_in_5(toolset: SkillsToolset[Any]) -> int:
    return sum(meant in found(toolset, query) for query, meant in REQUESTS.items())


def test_paraphrased_requests_find_their_skill_where_words_alone_do_not():
    by_words = found_in_5(SkillsToolset(skills=SKILLS))
    by_both = found_in_5(searching(ConceptModel(), SKILLS)[0])
    assert by_words / len(REQUESTS) < 0.9 <= by_both / len(REQUESTS)
    # The figures in docs/many-skills.md.
    assert (by_words, by_both, len(REQUESTS), len(SKILLS)) == (7, 39, 39, 31)


def test_words_that_the_model_does_not_know_are_found_too():
    rare = Skill[Any]('zx-9', 'Calibrates.', '')
    toolset, _ = searching(ConceptModel(), [*FEW, rare])
    assert found(toolset, 'calibrate')[0] == 'zx-9'


def test_what_shares_neither_a_word_nor_a_meaning_is_not_found():
    assert found(searching(ConceptModel(dimensions=31), FEW, min_similarity=0.1)[0], 'rain') == []


def test_rankings_are_fused_by_the_reciprocals_of_their_places():
    assert fuse(['a', 'b', 'c'], ['c', 'd']) == ['c', 'a', 'b', 'd']
    assert fuse(['a'], ['b']) == ['a', 'b']


async def test_a_model_finds_skills_by_meaning_in_a_run():
    script = ScriptedModel(calls=[('search_skills', {'query': 'shrink my photo'})])
    skills = SkillsCapability[Any](skills=FEW, ranker=EmbeddingRanker(ConceptModel()), search_tool='always')
    await Agent[Any, str](script.model, capabilities=[skills]).run('Go.')
    assert script.results[0][2] == {'image-resize': 'Resize images.'}


async def test_more_searches_than_threads_at_once_all_end():
    toolset, _ = searching(ConceptModel())
    answers: list[Any] = []

    async def search(number: int) -> None:
        script = ScriptedModel(calls=[('search_skills', {'query': f'photo {number}'})])
        await Agent[Any, str](script.model, toolsets=[toolset]).run('Go.')
        answers.append(script.results[0][2])

    toolset.library.settings = toolset.library.settings._replace(search_tool='always')
    async with create_task_group() as group:
        for number in range(60):
            group.start_soon(search, number)
    assert answers == [{'image-resize': 'Resize images.'}] * 60


class TestVectors:
    async def test_only_new_and_changed_descriptions_are_embedded(self):
        model = ConceptModel()
        toolset, _ = searching(model)
        await toolset.load(search=True)
        assert model.embedded == [
            'image resize\nResize images.',
            'invoice writer\nCreate an invoice for a payment.\naccounting',
        ]
        toolset.add_skill(Skill('poet', 'Compose verse.', ''))
        toolset.remove_skill('invoice-writer')
        assert await to_thread.run_sync(found, toolset, 'a sonnet') == ['poet']
        toolset.skills['poet'].description = 'Compose a haiku.'
        assert await to_thread.run_sync(found, toolset, 'a sonnet') == ['poet']
        assert model.embedded[2:] == ['poet\nCompose verse.', 'poet\nCompose a haiku.']

    def test_another_process_embeds_nothing_again(self, cache: Path):
        found(searching(ConceptModel())[0], 'photo')
        again = ConceptModel()
        toolset, _ = searching(again)
        assert found(toolset, 'photo') == ['image-resize']
        assert again.embedded == []
        assert [file.name for file in cache.iterdir()] == ['vectors-v1.sqlite']
        assert (cache / 'vectors-v1.sqlite').stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        ('model', 'settings'),
        [(ConceptModel('other'), None), (ConceptModel(), EmbeddingSettings(dimensions=48))],
    )
    def test_another_model_or_another_setting_has_vectors_of_its_own(
        self, model: ConceptModel, settings: EmbeddingSettings | None
    ):
        found(searching(ConceptModel())[0], 'photo')
        assert found(searching(model, settings=settings)[0], 'photo') == ['image-resize']
        assert len(model.embedded) == len(FEW)

    def test_secret_headers_do_not_change_which_vectors_are_taken(self):
        found(searching(ConceptModel(), settings={'extra_headers': {'authorization': 'one'}})[0], 'photo')
        model = ConceptModel()
        found(searching(model, settings={'extra_headers': {'authorization': 'two'}})[0], 'photo')
        assert model.embedded == []

    def test_nothing_is_kept_on_disk_if_that_is_not_wanted(self, cache: Path):
        toolset, ranker = searching(ConceptModel(), disk_index=False)
        assert found(toolset, 'photo') == ['image-resize']
        assert not cache.exists()
        assert ranker.problems == []

    def test_a_provider_with_another_model_under_the_same_name_is_noticed(self, tmp_path: Path):
        file = tmp_path / 'vectors.sqlite'
        found(searching(ConceptModel(), disk_index=file)[0], 'photo')
        model = ConceptModel(dimensions=40)
        assert found(searching(model, disk_index=file)[0], 'photo') == ['image-resize']
        assert len(model.embedded) == len(FEW)
        again = ConceptModel(dimensions=40)
        assert found(searching(again, disk_index=file)[0], 'photo') == ['image-resize']
        assert again.embedded == []

    def test_many_skills_are_embedded_in_batches(self):
        sizes: list[int] = []

        class Counting(ConceptModel):
            async def embed(self, inputs: str | Sequence[str], **options: Any) -> EmbeddingResult:
                sizes.append(1 if isinstance(inputs, str) else len(inputs))
                return await super().embed(inputs, **options)

        skills = [Skill[Any](f's-{number}', f'Does {number}.', '') for number in range(2 * MAX_BATCH + 1)]
        toolset, _ = searching(Counting(), [*skills, *FEW])
        assert found(toolset, 'photo')[0] == 'image-resize'
        assert sorted(sizes) == [1, 3, MAX_BATCH, MAX_BATCH]

    def test_a_query_is_embedded_once_even_if_most_skills_are_hidden(self):
        model = ConceptModel()
        toolset, ranker = searching(model)
        for _ in range(2):
            found(toolset, 'photo')
        assert model.asked == ['photo']
        for number in range(MAX_QUERIES):
            found(toolset, f'photo {number}')
        found(toolset, 'photo')
        assert model.asked.count('photo') == 2
        assert ranker.problems == []

    def test_a_description_that_changes_while_it_is_embedded_is_embedded_again(self):
        model = ConceptModel()
        toolset, ranker = searching(model)

        class Changing(ConceptModel):
            async def embed(self, inputs: str | Sequence[str], **options: Any) -> EmbeddingResult:
                if not self.embedded and options['input_type'] == 'document':
                    changed = [Skill[Any]('image-resize', 'Plot a chart.', '')]
                    await ranker.update(changed, ())
                return await super().embed(inputs, **options)

        model = Changing()
        toolset, ranker = searching(model)
        assert found(toolset, 'curve') == ['image-resize']
        assert model.embedded[-1] == 'image resize\nPlot a chart.'


class TestFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / 'vectors.sqlite'
        found(searching(ConceptModel(), disk_index=file)[0], 'photo')
        return file

    def search_again(self, file: Path) -> tuple[int, list[str]]:
        """How many texts are embedded again, and the problems."""
        model = ConceptModel()
        toolset, _ = searching(model, disk_index=file)
        assert found(toolset, 'photo') == ['image-resize']
        return len(model.embedded), [problem.code for problem in toolset.problems]

    def test_what_others_can_write_is_not_believed(self, file: Path):
        file.chmod(0o666)
        toolset, ranker = searching(ConceptModel(), disk_index=file)
        assert found(toolset, 'photo') == ['image-resize']
        (problem,) = ranker.problems
        assert (problem.code, 'can be written by other users' in problem.message) == ('vectors-failed', True)
        assert self.search_again(file) == (2, ['vectors-failed'])

    @pytest.mark.parametrize(
        'damage',
        [
            'UPDATE vectors SET vector = CAST(substr(vector, 1, 20) || zeroblob(10) AS BLOB)',
            'UPDATE vectors SET vector = zeroblob(3)',
            'UPDATE vectors SET vector = 7',
            "UPDATE vectors SET used = 'never'",
            'DROP TABLE vectors',
        ],
    )
    def test_damage_is_not_believed_and_mended(self, file: Path, damage: str):
        with sqlite3.connect(file) as database:
            database.execute(damage)
        database.close()
        assert self.search_again(file) == (2, [])
        assert self.search_again(file) == (0, [])

    def test_a_file_that_is_no_database_is_a_problem(self, file: Path):
        file.write_bytes(b'no database' * 100)
        assert self.search_again(file) == (2, ['vectors-failed'])

    def test_without_a_home_folder_everything_is_embedded_again(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv(CACHE_VARIABLE)
        monkeypatch.setattr(os.path, 'expanduser', lambda path: path)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        toolset, ranker = searching(ConceptModel())
        assert found(toolset, 'photo') == ['image-resize']
        assert ['no home directory' in problem.message for problem in ranker.problems] == [True]

    @pytest.mark.parametrize(('days', 'embedded'), [(80, 0), (100, 2)])
    def test_vectors_that_are_not_used_for_90_days_are_removed(self, file: Path, days: int, embedded: int):
        with sqlite3.connect(file) as database:
            database.execute('UPDATE vectors SET used = used - ?', (days * 86_400,))
        database.close()
        found(searching(ConceptModel('other'), disk_index=file)[0], 'photo')
        assert self.search_again(file) == (embedded, [])

    def test_use_is_noted_at_most_once_a_day(self, file: Path):
        with sqlite3.connect(file) as database:
            database.execute('UPDATE vectors SET used = used - 86400')
        database.close()
        self.search_again(file)
        before = file.stat().st_mtime_ns
        self.search_again(file)
        assert file.stat().st_mtime_ns == before


class Stuck(ConceptModel):
    """Never answers."""

    async def embed(
        self, inputs: str | Sequence[str], *, input_type: EmbedInputType, settings: EmbeddingSettings | None = None
    ) -> EmbeddingResult:
        self.asked.append(input_type)
        await sleep_forever()
        raise AssertionError


class Sending(ConceptModel):
    """Answers with the given embeddings."""

    def __init__(self, *embeddings: list[float]) -> None:
        super().__init__()
        self.embeddings = embeddings

    async def embed(
        self, inputs: str | Sequence[str], *, input_type: EmbedInputType, settings: EmbeddingSettings | None = None
    ) -> EmbeddingResult:
        return EmbeddingResult(self.embeddings, inputs=[], input_type=input_type, model_name='', provider_name='')


class TestFailure:
    def test_words_are_used_and_there_is_a_problem(self, caplog: pytest.LogCaptureFixture):
        model = ConceptModel()
        model.failure = ValueError('no \n credit')
        toolset, _ = searching(model)
        with caplog.at_level(logging.WARNING, 'pydantic_ai_skills'):
            assert found(toolset, 'resize') == ['image-resize']
        assert [(problem.code, problem.path, problem.message) for problem in toolset.problems] == [
            (
                'embedding-failed',
                'concepts',
                'Skills are found by their words only: embedding failed with ValueError: no credit',
            )
        ]
        assert ['embedding-failed' in record.message for record in caplog.records] == [True]

    async def test_it_never_ends_a_run(self):
        model = ConceptModel()
        model.failure = RuntimeError()
        script = ScriptedModel(calls=[('search_skills', {'query': 'resize'})])
        toolset = SkillsToolset[Any](skills=FEW, ranker=EmbeddingRanker(model), search_tool='always')
        await Agent[Any, str](script.model, toolsets=[toolset]).run('Go.')
        assert script.results == [('search_skills', 'success', {'image-resize': 'Resize images.'})]

    def test_the_provider_is_asked_again_only_after_a_while(self):
        model = ConceptModel()
        model.failure = ValueError('busy')
        patient, ranker = searching(model)
        found(patient, 'photo')
        model.failure = None
        assert found(patient, 'photo') == []
        assert (model.embedded, [problem.code for problem in ranker.problems]) == ([], ['embedding-failed'])
        model.failure = ValueError('busy')
        hasty, ranker = searching(model, retry_after=0)
        found(hasty, 'photo')
        model.failure = None
        assert found(hasty, 'photo') == ['image-resize']
        assert ranker.problems == []

    def test_descriptions_that_fail_are_not_tried_again_with_each_search(self):
        class Picky(ConceptModel):
            async def embed(self, inputs: str | Sequence[str], **options: Any) -> EmbeddingResult:
                if options['input_type'] == 'document':
                    self.embedded.append('refused')
                    raise ValueError('too long')
                return await super().embed(inputs, **options)

        toolset, ranker = searching(model := Picky(), retry_after=3_600)
        for query in ('resize', 'resize it', 'resize them'):
            assert found(toolset, query) == ['image-resize']
        assert model.embedded == ['refused']
        assert [problem.code for problem in ranker.problems] == ['embedding-failed']

    def test_a_provider_that_does_not_answer_is_given_up(self):
        model = Stuck()
        toolset, ranker = searching(model, timeout=0.01)
        assert found(toolset, 'resize') == ['image-resize']
        assert ['TimeoutError' in problem.message for problem in ranker.problems] == [True]
        assert model.asked == ['document']

    def test_a_failure_at_the_query_leaves_the_words(self):
        toolset, ranker = searching(model := ConceptModel())
        found(toolset, 'photo')
        model.failure = ValueError('busy')
        assert found(toolset, 'resize smaller') == ['image-resize']
        assert [problem.code for problem in ranker.problems] == ['embedding-failed']

    @pytest.mark.parametrize('embeddings', [([],), ([1.0], [float('nan')]), ([1.0],), ([1.0], [2.0], [3.0])], ids=str)
    def test_embeddings_that_cannot_be_are_refused(self, embeddings: tuple[list[float], ...]):
        toolset, ranker = searching(Sending(*embeddings))
        assert found(toolset, 'resize') == ['image-resize']
        assert [problem.code for problem in ranker.problems] == ['embedding-failed']

    def test_a_model_that_does_not_exist_is_found_out_at_the_first_search(self):
        ranker = EmbeddingRanker('nobody:nothing')
        toolset = SkillsToolset(skills=FEW, ranker=ranker)
        assert found(toolset, 'resize') == ['image-resize']
        assert [problem.path for problem in ranker.problems] == ['nobody:nothing']

    def test_embeddings_of_zeros_are_similar_to_nothing(self):
        toolset, ranker = searching(Sending([0.0, 0.0], [0.0, 0.0]))
        assert found(toolset, 'photo') == []
        assert ranker.problems == []


@pytest.mark.parametrize('again', [copy.deepcopy, lambda ranker: pickle.loads(pickle.dumps(ranker))])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
def test_a_copy_finds_the_same(again: Any):
    toolset, ranker = searching(ConceptModel())
    found(toolset, 'photo')
    assert found(SkillsToolset(skills=FEW, ranker=again(ranker)), 'photo') == ['image-resize']


def test_a_provider_of_pydantic_ai_is_asked_over_http():
    bodies: list[dict[str, Any]] = []

    class Embeddings(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers['content-length'])))
            bodies.append(body)
            rows = [
                {'embedding': concepts_of(text), 'index': at, 'object': 'embedding'}
                for at, text in enumerate(body['input'])
            ]
            usage = {'prompt_tokens': 1, 'total_tokens': 1}
            answer = json.dumps({'data': rows, 'model': body['model'], 'object': 'list', 'usage': usage}).encode()
            self.send_response(200)
            self.send_header('content-type', 'application/json')
            self.send_header('content-length', str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    with override_allow_model_requests(True), ThreadingHTTPServer(('127.0.0.1', 0), Embeddings) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        provider = OpenAIProvider(base_url=f'http://127.0.0.1:{server.server_port}/v1', api_key='none')
        model = OpenAIEmbeddingModel('small', provider=provider)
        toolset, ranker = searching(model)
        # Each search has an event loop of its own, and the provider one client.
        assert [found(toolset, query) for query in ('photo', 'a snapshots bill')] == [
            ['image-resize'],
            ['invoice-writer', 'image-resize'],
        ]
        server.shutdown()
    assert ranker.problems == []
    assert [len(body['input']) for body in bodies] == [2, 1, 1]
