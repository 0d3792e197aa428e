"""Location traces: noise for a whole trace that hides secret times although the times around them tell much.

The guarantee is conditional inferential privacy (Meehan, Chaudhuri 2021): for a stated kernel, secret and radius,
over the prior draw of the other locations and the noise. It is no worst-case differential privacy.
"""
