"""A certificate authority of a test's own, and a broker's certificate by it: made with openssl, on elliptic curves."""

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
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    _openssl("req", "-x509", *CURVE, "-subj", f"/CN={name}", "-keyout", made.key, "-out", made.certificate)
    return made


def make_certificate(folder: Path, authority: Certificate, subject: str = "IP:127.0.0.1") -> Certificate:
    """For a server: an alternative name as openssl has it, which need not be true."""
    made, request, extension = Certificate(folder / "server.pem", folder / "server.key"), folder / "csr", folder / "ext"
    extension.write_text(f"subjectAltName={subject}\n")
    _openssl("req", *CURVE, "-subj", "/CN=broker", "-keyout", made.key, "-out", request)
    _openssl(
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        request,
        "-out",
        made.certificate,
        "-extfile",
        extension,
        "-CA",
        authority.certificate,
        "-CAkey",
        authority.key,
        "-CAcreateserial",
    )
    return made


def _openssl(*words: object) -> None:
    if shutil.which("openssl") is None:
        lacks("openssl is not installed")
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
