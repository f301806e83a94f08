"""Makes the small data set that the lite modes of a config train on.

``source`` finds the samples of a full data set, ``choice`` chooses some, ``archive`` writes them.
"""
