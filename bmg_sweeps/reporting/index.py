"""The page that leads to those of several sweeps: their state and their claims."""

import dataclasses
import urllib.parse
from collections.abc import Sequence

from bmg_sweeps import formatting
from bmg_sweeps.analysis import claims, readings
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.reporting import claim_table, page, rendering, tables


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """What is shown of a sweep."""

    link: str  # To its page.
    name: str
    title: str
    trainer: str
    scale: str
    stop: str
    devices: str
    points: int
    done: int
    lost: int  # Points that failed or diverged, or whose records are damaged.
    claims: tuple[claims.Decided, ...]
    warnings: tuple[str, ...]  # About its scale.

    def counted(self, *verdicts: Verdict) -> int:
        """Counts the claims with one of some verdicts."""
        return sum(one.verdict in verdicts for one in self.claims)


def entry(file_name: str, results: Results) -> Entry:
    """Says what is shown of a sweep.

    Args:
        file_name: of the sweep's page.
        results: of the sweep.

    Returns:
        Little, so that those of many sweeps can be kept.
    """
    chosen, statuses = results.chosen, list(page.statuses_of(results).values())
    return Entry(
        link=urllib.parse.quote(file_name),
        name=chosen.name,
        title=chosen.sweep.title,
        trainer=chosen.sweep.trainer,
        scale=chosen.choice.scale,
        stop=formatting.shown_amounts(chosen.stop),
        devices=", ".join(readings.devices(results.trained)) or tables.NOTHING,
        points=len(statuses),
        done=statuses.count("done"),
        lost=sum(status in page.TROUBLE for status in statuses),
        claims=claims.decide(results),
        warnings=tuple(page.scale_warnings(chosen)),
    )


def write(entries: Sequence[Entry], using: str) -> str:
    """Writes the page.

    Args:
        entries: the sweeps.
        using: says which storage and scale.

    Returns:
        HTML that needs no other file.
    """
    rows = [
        {
            "entry": one,
            "supported": one.counted(Verdict.SUPPORTED),
            "contradicted": one.counted(Verdict.CONTRADICTED),
            "open": len(one.claims)
            - one.counted(Verdict.SUPPORTED, Verdict.CONTRADICTED),
        }
        for one in entries
    ]
    decided = [_claim(one, claim) for one in entries for claim in one.claims]
    return rendering.render(
        "index.html",
        scripts=[],
        rows=rows,
        claims=decided,
        using=using,
        warnings=list(dict.fromkeys(w for one in entries for w in one.warnings)),
    )


def _claim(one: Entry, decided: claims.Decided) -> dict[str, str]:
    difference = tables.Column("difference", "interval")
    return {
        "link": one.link,
        "name": one.name,
        "text": decided.claim.text,
        "verdict": claim_table.verdict(decided),
        "difference": tables.written(difference, decided.difference, is_exact=True),
    }
