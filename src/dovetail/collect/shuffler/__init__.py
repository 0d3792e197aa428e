"""The shuffler: takes sealed reports, breaks the link to people, hands closed batches to the analyzer.

It cannot read a report: the code that opens inner envelopes belongs to the analyzer, and nothing here imports it.
"""
