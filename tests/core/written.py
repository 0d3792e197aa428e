"""The number that a reader sees in what was written for people."""

POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(text: str) -> float:
    """`1,234.5`, `2 × 10⁻⁷`, `10⁻⁶` and `∞` as numbers."""
    if text == "∞":
        return float("inf")
    if text[-1].isdigit() and text[-1].isascii():
        return float(text.replace(",", ""))
    mantissa, _, power = text.rpartition("10")
    return float(f"{mantissa.replace('×', '').strip() or '1'}e{power.translate(POWERS)}")
