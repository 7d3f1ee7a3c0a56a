"""The keys of a user's runs, in a folder: a component that has the folder can take part in them, others cannot.

ca.pem                         signs the two certificates below; its own key is thrown away
listener.pem, listener.key     TLS of engine and reporter, which listen, and of a private broker
connector.pem, connector.key   TLS of those that connect to them
listener.curve, connector.curve   the keys of both for ZeroMQ's CURVE: public and secret key, a line each, in Z85

Each end proves that it has its key. The CA has signed these two certificates only, so no host name is checked. All keys
expire with the certificates. openssl makes the certificates: Python's ssl reads certificates and makes none.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transports.base import Address, BadAddress, NotInstalled, TransportError
from transports.regular_files import read_regular

LISTENER = "listener"
CONNECTOR = "connector"
USAGE = {LISTENER: "serverAuth", CONNECTOR: "clientAuth"}
"""Extended key usage of each end's certificate: a connector's is refused where a listener is expected."""
SECRETS = tuple(f"{end}.{kind}" for end in USAGE for kind in ("key", "curve"))
FILES = ("ca.pem", *(f"{end}.pem" for end in USAGE), *SECRETS)
CONFIGURATION = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
"""
EXTENSIONS = "keyUsage = critical, digitalSignature\nextendedKeyUsage = {usage}\nsubjectAltName = DNS:{end}\n"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-batch")
CURVE_KEYS = re.compile(rb"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{80}")
CERTIFICATE_HAS_EXPIRED = 10
"""OpenSSL's number of the reason, X509_V_ERR_CERT_HAS_EXPIRED."""
HANDSHAKE_TURNS = 3
"""In TLS 1.3 each end needs two turns at most; the third one is to spare."""
MOST_BYTES = 1 << 20
MAKE = "make keys with: exchange keys DIR"


class Curve(NamedTuple):
    """One end's pair of CURVE keys, and the public key of the other end; each in Z85."""

    public: bytes
    secret: bytes
    theirs: bytes


@dataclass(frozen=True)
class Keys:
    """The keys in a folder. Each file is read when it is needed."""

    folder: Path

    @classmethod
    def of(cls, address: Address) -> Keys:
        """The keys that the address's option `keys` names. BadAddress if they cannot be used."""
        return cls.checked(Path(address.options["keys"]))

    @classmethod
    def checked(cls, folder: Path, now_s: float | None = None) -> Keys:
        """The keys of a folder. BadAddress if a file is missing, others may read it, it is no key, or has expired."""
        for name in FILES:
            _check_file(folder / name, name in SECRETS)
        keys = cls(folder)
        for end in USAGE:
            keys.tls(end)
            keys.curve(end)
        expiry_s = keys.expiry_s
        if now_s is None:
            now_s = time.time()
        if expiry_s <= now_s:
            day = time.strftime("%Y-%m-%d", time.localtime(expiry_s))
            raise BadAddress(f"the keys in {folder} expired on {day}: {MAKE}")
        keys._check_expiry_of_ends()
        return keys

    @property
    def expiry_s(self) -> float:
        """The time at which the certificates expire, in seconds of the epoch."""
        context = self._certificate("ca.pem")
        try:
            [authority] = context.get_ca_certs()
            return ssl.cert_time_to_seconds(str(authority["notAfter"]))
        except ValueError as error:
            raise BadAddress(f"{self.folder / 'ca.pem'} is no certificate of an authority: {MAKE}") from error

    def _check_expiry_of_ends(self) -> None:
        """BadAddress if the certificate of one end has expired, although that of the authority has not.

        The ends shake hands in memory, since Python's ssl reads no other expiry than an authority's. Over CURVE nothing
        else looks at these certificates, which say how long the keys of all transports are valid.
        """
        to_connector = ssl.MemoryBIO()
        to_listener = ssl.MemoryBIO()
        listener = self.tls(LISTENER).wrap_bio(to_listener, to_connector, server_side=True)
        connector = self.tls(CONNECTOR).wrap_bio(to_connector, to_listener)
        for _ in range(HANDSHAKE_TURNS):
            self._shake_hands(connector, LISTENER)
            self._shake_hands(listener, CONNECTOR)

    def _shake_hands(self, end: ssl.SSLObject, other: str) -> None:
        """Go on with one end's handshake, as far as it can. BadAddress if the other end's certificate has expired.

        Whatever else is wrong with a certificate is for the peer to find, who may have other keys than this folder.
        """
        try:
            end.do_handshake()
        except ssl.SSLCertVerificationError as error:
            if error.verify_code == CERTIFICATE_HAS_EXPIRED:
                raise BadAddress(f"{self.folder / f'{other}.pem'} has expired: {MAKE}") from error
        except ssl.SSLError:  # among them the one that asks for more of the other end's bytes
            return

    def tls(self, end: str) -> ssl.SSLContext:
        """The TLS settings of one end: both ends show certificates, and use version 1.3 or later."""
        protocol = ssl.PROTOCOL_TLS_SERVER if end == LISTENER else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        if end == LISTENER:
            context.num_tickets = 0  # no session is resumed
        certificate = self.folder / f"{end}.pem"
        key = self.folder / f"{end}.key"
        self._load(lambda: context.load_verify_locations(self.folder / "ca.pem"), "ca.pem")
        self._certificate(certificate.name)
        self._load(lambda: context.load_cert_chain(certificate, key), key.name)
        return context

    def _certificate(self, name: str) -> ssl.SSLContext:
        """A context that trusts the certificate alone. BadAddress if the file holds none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._load(lambda: context.load_verify_locations(self.folder / name), name)
        return context

    def _load(self, load: Callable[[], object], name: str) -> None:
        """Call `load`. BadAddress, which names the file, if it fails."""
        try:
            load()
        except (ssl.SSLError, OSError) as error:
            raise BadAddress(f"{self.folder / name} cannot be used ({error}): {MAKE}") from error

    def curve(self, end: str) -> Curve:
        """The CURVE keys of one end, with the public key of the other."""
        public, secret = self._curve(end)
        theirs, _ = self._curve(CONNECTOR if end == LISTENER else LISTENER)
        return Curve(public, secret, theirs)

    def _curve(self, end: str) -> list[bytes]:
        """The public and the secret key of one end. BadAddress if the file holds no such pair."""
        path = self.folder / f"{end}.curve"
        keys = path.read_bytes().split()
        if [len(key) for key in keys] != [40, 40] or not CURVE_KEYS.fullmatch(b"".join(keys)):
            raise BadAddress(f"{path} holds no pair of CURVE keys: {MAKE}")
        return keys


def _check_file(path: Path, is_secret: bool) -> None:
    try:
        mode = path.stat().st_mode
        read_regular(path, MOST_BYTES, "a key")
    except FileNotFoundError as error:
        raise BadAddress(f"{path} is missing: {MAKE}") from error
    except OSError as error:
        raise BadAddress(f"cannot read {path}: {error.strerror}") from error
    if is_secret and stat.S_IMODE(mode) & 0o077:
        raise BadAddress(f"others may read {path}: make new keys, or type chmod 600 {path} if nobody has read it")


def make_keys(folder: Path, days: int) -> Keys:
    """Make the folder with new keys; after an error nothing is left of it.

    TransportError if the folder exists or openssl fails; OSError if the folder cannot be made.
    """
    if shutil.which("openssl") is None:
        raise NotInstalled("keys are made with openssl, which is not installed: sudo apt-get install openssl")
    if os.path.exists(folder):
        raise BadAddress(f"{folder} exists already: name a new folder, so that no key in use is lost")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as unfinished:
        _make_in(Path(unfinished), days)
        (Path(unfinished) / "keys").rename(folder)
    return Keys.checked(folder)


def _make_in(scratch: Path, days: int) -> None:
    """Make the folder `keys` in the scratch folder. The CA's own key is deleted with the scratch folder."""
    import zmq  # only commands that make keys, and ZeroMQ links, need it

    keys = scratch / "keys"
    keys.mkdir(mode=0o700)
    (scratch / "cnf").write_text(CONFIGURATION)
    configured = ("-config", scratch / "cnf")
    valid = ("-days", days)
    authority = ("-extensions", "authority", "-subj", "/CN=exchange keys")
    _openssl(
        "req",
        "-x509",
        *configured,
        *NEW_KEY,
        *valid,
        *authority,
        "-keyout",
        scratch / "ca.key",
        "-out",
        keys / "ca.pem",
    )
    for serial, (end, usage) in enumerate(USAGE.items(), 1):
        key = keys / f"{end}.key"
        request = scratch / "csr"
        extensions = scratch / "ext"
        extensions.write_text(EXTENSIONS.format(usage=usage, end=end))
        _openssl("req", *configured, *NEW_KEY, "-subj", f"/CN={end}", "-keyout", key, "-out", request)
        signed = ("-CA", keys / "ca.pem", "-CAkey", scratch / "ca.key", "-set_serial", serial, "-extfile", extensions)
        _openssl("x509", "-req", *valid, "-in", request, "-out", keys / f"{end}.pem", *signed)
        (keys / f"{end}.curve").write_bytes(b"\n".join(zmq.curve_keypair()) + b"\n")
    for path in keys.iterdir():
        path.chmod(0o600)


def _openssl(*words: object) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, umask=0o077, check=False)
    if done.returncode:
        raise TransportError(f"openssl {words[0]} failed: {done.stderr.strip() or done.returncode}")
