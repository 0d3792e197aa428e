"""Privacy loss distributions, their convolution and Renyi divergences over several rounds; the verb is
`account.compose`.
"""
