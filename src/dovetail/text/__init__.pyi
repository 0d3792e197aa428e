"""The public names of `dovetail.text`, once, with their home."""

from .candidates.candidates import Candidates as Candidates
from .deep_candidate import DeepCandidate as DeepCandidate
from .documents import Document as Document, PublicDocuments as PublicDocuments, split_sentences as split_sentences
from .encoders.encoder import CallableEncoder as CallableEncoder, SentenceEncoder as SentenceEncoder
from .encoders.sentence_model import SentenceModel as SentenceModel
from .encoders.svd import SVDEncoder as SVDEncoder
from .guarantee import SentenceDP as SentenceDP

__all__: list[str]
