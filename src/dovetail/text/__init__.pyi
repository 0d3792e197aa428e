"""The public names of `dovetail.text`, once, with their home."""

from .candidates import Candidates as Candidates
from .deep_candidate import DeepCandidate as DeepCandidate
from .documents import Document as Document, PublicDocuments as PublicDocuments, split_sentences as split_sentences
from .encoders import CallableEncoder as CallableEncoder, SentenceEncoder as SentenceEncoder
from .encoders import SentenceModel as SentenceModel
from .encoders import SVDEncoder as SVDEncoder
from .deep_candidate import SentenceDP as SentenceDP

__all__: list[str]
