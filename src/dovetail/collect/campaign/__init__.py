"""A campaign as its owner and both servers see it: roster, versions, explanation, guarantees, fitted shuffler; its
file format is `dovetail_protocol.campaign`.
"""
