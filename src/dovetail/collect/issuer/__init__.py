"""The issuer: knows who may take part, and signs one token a person and round without seeing it. Experimental.

It holds roster, invitations or the accounts of a site, and the shuffler holds none of them.
"""
