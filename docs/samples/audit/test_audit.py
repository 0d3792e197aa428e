"""Your project's randomizer, audited at every commit. A passed audit is no proof."""

from my_project import randomize


def test_the_randomizer_keeps_its_epsilon(dovetail_audit):
    dovetail_audit(randomize, [0, 1], epsilon=1.0, least=0.5)  # half of the claim must show


def test_the_promise_of_the_batch_is_proved(dovetail_audit):
    dovetail_audit.claim(epsilon0=1.0, n=10_000, delta=1e-6, epsilon=0.1)
