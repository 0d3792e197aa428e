"""What a leakage says of itself: its ends and its method."""

from dovetail.leak.additive_leakage import METHODS, AdditiveLeakage, weakest_method


def test_a_leakage_known_to_within_an_error_lies_between_ends_on_both_sides() -> None:
    found = AdditiveLeakage.from_error(0.5, 0.25, "exact sum")
    assert (found.lower, found.value, found.upper, found.error) == (0.25, 0.5, 0.75, 0.25)
    assert AdditiveLeakage.from_error(0.125, 0.25, "exact sum").lower == 0.0, "a leakage is never below 0"


def test_the_value_quoted_for_a_bracket_is_its_upper_end() -> None:
    found = AdditiveLeakage.from_bracket(0.25, 0.75)
    assert (found.value, found.method, found.error) == (0.75, "bracket", 0.5)


def test_of_several_methods_the_least_firm_one_is_named() -> None:
    parts = [AdditiveLeakage(0.0, 0.0, 0.0, method) for method in METHODS]
    assert [weakest_method(parts[0], part) for part in parts] == list(METHODS)
    assert weakest_method(*reversed(parts)) == "bracket"
