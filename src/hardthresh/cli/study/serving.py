"""``hardthresh study serve``: a study as a page for people and an API for instruments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import names_of
from ..terminal import write_stderr, write_stdout
from .options import StudyFile


def serve(
    study: StudyFile,
    host: Annotated[str, typer.Option(help="Address to listen at; by default only this computer can reach it.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8123,
    certificate: Annotated[Path | None, typer.Option(help="Certificate for TLS (PEM); needs --tls-key.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the certificate (PEM).")] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="HARDTHRESH_TOKEN",
            show_envvar=False,
            help="What has to be known to use the page. Default: $HARDTHRESH_TOKEN, or a random one.",
        ),
    ] = None,
    names: Annotated[list[str] | None, typer.Option("--name", help="Further names of this computer, NAME,...")] = None,
    allow_plain: Annotated[
        bool, typer.Option("--allow-plain", help="Serve to a network without TLS, as behind a proxy that has it.")
    ] = False,
) -> None:
    """Serve a page on which people answer, and an API for instruments, until Ctrl-C.

    It prints an address with a token; whoever opens that can ask and answer. Other computers reach it through a tunnel
    (ssh -L), or by --host with a certificate for TLS.
    """
    from hardthresh.study.serve import run

    def announce(address: str) -> None:
        write_stderr(f"serving {study}; Ctrl-C ends it, and nothing that was stored is lost")
        write_stdout(f"{address}\n")

    run(
        study,
        host,
        port,
        certificate,
        tls_key,
        token,
        names=tuple(names_of(names)),
        allow_plain=allow_plain,
        announce=announce,
    )
