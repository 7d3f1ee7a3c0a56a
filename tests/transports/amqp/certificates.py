"""A certificate authority for a test, and a broker's certificate signed by it, made with openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.machine import lacks

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-batch")


class Certificate(NamedTuple):
    certificate: Path
    key: Path


def make_authority(folder: Path, name: str = "ca") -> Certificate:
    """Make a certificate that signs itself."""
    authority = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    _openssl("req", "-x509", *CURVE, "-subj", f"/CN={name}", "-keyout", authority.key, "-out", authority.certificate)
    return authority


def make_certificate(folder: Path, authority: Certificate, subject: str = "IP:127.0.0.1") -> Certificate:
    """Make a server's certificate. `subject` is its alternative name as openssl writes it, which may be a wrong one."""
    server = Certificate(folder / "server.pem", folder / "server.key")
    request = folder / "csr"
    extension = folder / "ext"
    extension.write_text(f"subjectAltName={subject}\n")
    _openssl("req", *CURVE, "-subj", "/CN=broker", "-keyout", server.key, "-out", request)
    _openssl(
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        request,
        "-out",
        server.certificate,
        "-extfile",
        extension,
        "-CA",
        authority.certificate,
        "-CAkey",
        authority.key,
        "-CAcreateserial",
    )
    return server


def _openssl(*words: object) -> None:
    if shutil.which("openssl") is None:
        lacks("openssl is not installed")
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
