"""How far reordering a group can change a rank distance, and the largest theta that a guarantee allows; no random
numbers are drawn here.
"""
