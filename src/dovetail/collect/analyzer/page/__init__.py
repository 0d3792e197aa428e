"""The live page that everybody may see: charts and HTML; every number in it comes from `answers`."""
