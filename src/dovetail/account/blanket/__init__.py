"""The privacy blanket of one mechanism and the certified sum over n reports; which law belongs to which mechanism
lives in `mechanisms`.
"""
