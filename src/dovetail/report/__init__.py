"""One collection, five lenses: the privacy report and its renderings."""
