"""An embedding model without a network: words that mean the same share a dimension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType

CONCEPTS = """
money pay payment invoice bill billing charge owe owed
cost expense spend spending reimbursement receipt reimburse travelled
document pdf page pages paper papers printout
join merge combine glue together stitch unite one
picture photo image images photograph snapshots shots
shrink compress smaller reduce resize lighter
speech talk audio voice recording spoken heard podcast
text transcript transcribe write written words transcription
language translate french german foreign translation speaks
vacation leave holiday absence off away sick
employee colleague person newcomer hire hired staff joiner
start onboarding begin first welcome
server deploy deployment release rollout live production ship
undo rollback revert back previous
slow performance latency profile speed fast sluggish
database sql query table rows
test tests check unit verify proof
password secret credential key login locked
chart graph plot diagram visualise visualize curve
table spreadsheet csv excel sheet cells
meeting appointment calendar schedule slot diary
mail email inbox message letter reply
law contract clause agreement legal lawyer
customer client complaint angry unhappy buyer ticket
weather forecast rain sunny umbrella
recipe cook dinner meal kitchen hungry
poem verse rhyme haiku sonnet
map route directions travel distance drive
summary summarize short gist brief points
bug crash error failure stacktrace broken exception
""".strip().splitlines()

DIMENSIONS = 64


class ConceptModel(EmbeddingModel):
    """Counts concepts, and gives each other word a weak dimension of its own."""

    def __init__(self, name: str = 'concepts', *, dimensions: int = DIMENSIONS) -> None:
        super().__init__()
        self.name = name
        self.dimensions = dimensions
        self.embedded: list[str] = []
        """All texts of skills that it was given."""
        self.asked: list[str] = []
        """All queries that it was given."""
        self.failure: Exception | None = None
        """What it raises, if anything."""

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def system(self) -> str:
        return 'tests'

    async def embed(
        self, inputs: str | Sequence[str], *, input_type: EmbedInputType, settings: EmbeddingSettings | None = None
    ) -> EmbeddingResult:
        texts, settings = self.prepare_embed(inputs, settings)
        if self.failure is not None:
            raise self.failure
        (self.asked if input_type == 'query' else self.embedded).extend(texts)
        dimensions = settings.get('dimensions') or self.dimensions
        return EmbeddingResult(
            [concepts_of(text, dimensions) for text in texts],
            inputs=texts,
            input_type=input_type,
            model_name=self.name,
            provider_name=self.system,
        )


def concepts_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """How often a text has each concept."""
    found = [0.0] * dimensions
    for word in re.findall(r'[a-z]+', text.lower()):
        meant = [number for number, concept in enumerate(CONCEPTS) if word in concept.split()]
        for number in meant:
            found[number] += 1
        if not meant and len(word) > 3:
            others = dimensions - len(CONCEPTS)
            found[len(CONCEPTS) + crc32(word.encode()) % others] += 0.05
    return found
