"""Sentence privacy: a document is released as one public embedding that hides any one of its sentences.

`PublicDocuments` and an encoder (`SVDEncoder`, `SentenceModel`) give `Candidates`; `DeepCandidate` selects one of
them for a private document under `SentenceDP`. Files and tables: `dovetail text`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
