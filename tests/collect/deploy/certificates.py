"""A throw-away authority, and a certificate of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_FROM, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


def make_certificates(folder: Path, names: list[str]) -> None:
    """`authority.pem`, `certificate.pem` for these names, and `key.pem`, which only its owner can read."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, key = generate_private_key(SECP256R1()), generate_private_key(SECP256R1())
    root = _name("test authority")
    mine = (
        _builder(root, root, authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority, SHA256())
    )
    issued = (
        _builder(_name(names[0]), root, key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        .sign(authority, SHA256())
    )
    (folder / "authority.pem").write_bytes(mine.public_bytes(Encoding.PEM))
    (folder / "certificate.pem").write_bytes(issued.public_bytes(Encoding.PEM))
    (folder / "key.pem").touch(mode=0o600)
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), _FROM, _UNTIL)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
