"""The server's certificate: the user's, or one of its own that is made at the first start."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from asyncua.crypto.cert_gen import (
    dump_private_key_as_pem,
    generate_private_key,
    generate_self_signed_app_certificate,
)
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, xdg_folder
from ur_energy_model.sinks.credentials import OpcuaCredentials

DAYS = 3650
"""Validity of a certificate that is made here."""


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate (DER or PEM) and its private key (PEM)."""

    certificate: Path
    key: Path


def application_uri(host: str | None = None) -> str:
    """Name of the server among all applications; the certificate has it too (OPC 10000-6, 6.2)."""
    return f"urn:{host or socket.gethostname()}:ur_energy_model"


def server_certificate(
    credentials: OpcuaCredentials, *, option: str, folder: Path | None = None
) -> Certificate:
    """The certificate of the server.

    Args:
        credentials: may state one.
        option: that asks for the server, for messages.
        folder: of one made here, default ur_energy/opcua in the user's state folder
            ($XDG_STATE_HOME or ~/.local/state).

    Raises:
        InputError: the folder cannot be written.
    """
    if credentials.certificate is not None and credentials.key is not None:
        return Certificate(credentials.certificate, credentials.key)
    found = xdg_folder("XDG_STATE_HOME", "~/.local/state") / "opcua" if folder is None else folder
    own = Certificate(found / "certificate.der", found / "key.pem")
    if not (own.certificate.is_file() and own.key.is_file()):
        try:
            _make(own)
        except OSError as error:
            raise InputError(
                option,
                f"no certificate can be made in {found} ({error.strerror})",
                "state certificate and key of opcua in the file of --credentials",
            ) from error
    return own


def _make(own: Certificate) -> None:
    host = socket.gethostname()
    key = generate_private_key()
    certificate = generate_self_signed_app_certificate(
        key,
        f"ur_energy on {host}"[:64],
        {},
        [
            x509.UniformResourceIdentifier(application_uri(host)),
            x509.DNSName(host),
            x509.DNSName("localhost"),
        ],
        [ExtendedKeyUsageOID.SERVER_AUTH],
        DAYS,
    )
    own.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with new_file(own.key, "wb") as file:
        file.write(dump_private_key_as_pem(key))
    own.key.chmod(0o600)
    with new_file(own.certificate, "wb") as file:
        file.write(certificate.public_bytes(Encoding.DER))
