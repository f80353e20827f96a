"""`python -m benchmarks.figures`: the page docs/figures.md, with each repeated figure beside the claim of its paper.

`make bench` writes it again after its plots.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import RESULTS

PAGE = RESULTS.parents[1] / "docs" / "figures.md"


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper that was measured again."""

    file: str
    number: str
    claim: str
    """What the paper concludes from it, in our words."""
    remark: str = ""
    """What differs here."""


PAPERS: dict[str, tuple[PaperFigure, ...]] = {
    "PSoup: streaming queries over streaming data": (
        PaperFigure(
            "psoup-response-equalities.svg",
            "Fig. 7a",
            "Selections with equalities: the response time grows with the window in all systems. Results that are kept "
            "(PSoup-P, PSoup-C) answer much faster than evaluation at the invocation (NoMat).",
        ),
        PaperFigure("psoup-response-intervals.svg", "Fig. 7b", "The same for selections with intervals."),
        PaperFigure(
            "join-response.svg",
            "Fig. 8",
            "Inequality joins: NoMat takes about a hundred times as long as kept results; PSoup-P less than ten times "
            "as long as PSoup-C (30 and 8.5 ms with windows of 576 tuples).",
            "Key indexes and sorted blocks make the evaluation at the invocation far cheaper than the paper's NoMat: "
            "it takes less time than PSoup-P.",
        ),
        PaperFigure(
            "psoup-predicates.svg",
            "Table 2",
            "More predicates in a query cost NoMat more time; kept results take less, because there are fewer of them.",
            "NoMat takes less time too: it looks up the most selective predicate in an index.",
        ),
        PaperFigure(
            "psoup-arrival-intervals-1000.svg",
            "Fig. 9",
            "Arrival rate: sharing predicates in an index (Shrd) is ten times faster than evaluating each query "
            "(Unshrd), and a hundred times faster than keeping windows current (PSoup-C); more so with more queries.",
        ),
        PaperFigure(
            "join-probes-eq-ineq.svg",
            "Fig. 11, Eq/Ineq",
            "Composite tuples, whose shared factor is an equality, take half the time of separate ones.",
        ),
        PaperFigure(
            "join-probes-ineq-eq.svg",
            "Fig. 11, Ineq/Eq",
            "Composite tuples are faster, because they are joined by sort-merge.",
        ),
        PaperFigure(
            "join-probes-ineq-ineq.svg",
            "Fig. 11, Ineq/Ineq",
            "Separate probes by an index are faster: sort-merge does not suit inequalities.",
        ),
        PaperFigure("psoup-response-traffic.svg", "Fig. 12", "Sensors on a road show the trend of Fig. 7."),
        PaperFigure(
            "psoup-arrival-traffic-1000.svg",
            "Fig. 13a",
            "As Fig. 9; with windows of 1,000 tuples and many queries, sharing outweighs the cost of current windows.",
        ),
        PaperFigure(
            "psoup-arrival-traffic-10000.svg",
            "Fig. 13b",
            "With windows of 10,000 tuples, keeping them current always costs more than not sharing predicates.",
        ),
    ),
    "CACQ: continuously adaptive continuous queries": (
        PaperFigure("cacq-queries.svg", "Throughput", "Throughput falls slowly with the number of queries."),
        PaperFigure(
            "cacq-sources.svg",
            "Sources",
            "Throughput falls with the number of sources.",
            "The queries are spread over the sources, so that each has fewer; blocks of tuples hide the cost of a "
            "source.",
        ),
        PaperFigure(
            "cacq-state.svg",
            "Tuple state",
            "With few queries, throughput falls as each tuple carries more bits of state, less and less steeply: it is "
            "bound by the memory that tuples take.",
            "A bitmap for each tuple falls in the same way. The engine keeps one for each distinct set of queries, or "
            "pairs of a tuple and a query where there are few, so that its state hardly depends on the bits.",
        ),
        PaperFigure(
            "cacq-routing.svg",
            "Routing",
            "Tickets route a tuple to fewer filters than a random order, and nearly as few as the best order.",
        ),
        PaperFigure(
            "cacq-adaptation.svg", "Adaptation", "Lotteries find the new best order soon after selectivities change."
        ),
        PaperFigure(
            "cacq-tickets-1.svg",
            "Tickets, workload 1",
            "A new filter has no tickets; seconds later, selective filters that many queries apply have most of them.",
        ),
        PaperFigure(
            "cacq-tickets-2.svg",
            "Tickets, workload 2",
            "Of filters with one selectivity, those that apply more predicates get more tickets.",
        ),
        PaperFigure(
            "cacq-tickets-3.svg",
            "Tickets, workload 3",
            "As in workload 2, with slightly more tickets for more selective predicates.",
        ),
        PaperFigure(
            "cacq-join-queries.svg",
            "Stocks and articles",
            "The shared join keeps up with the better of NiagaraCQ's two plans without an optimizer: faster than both "
            "with few queries, slightly slower than one with many.",
        ),
        PaperFigure(
            "cacq-join-functions.svg",
            "Expensive selections",
            "Functions are called once per quote before the join; a plan that joins first calls them for each article.",
        ),
    ),
    "PWJoin: joins of punctuated streams with windows": (
        PaperFigure(
            "pwjoin-state-1.svg",
            "Fig. 8, 1 s",
            "The state of PWJoin is smaller than that of a window join, the more so the larger the window is; equation "
            "(1) of its section 5 estimates it.",
            "Equation (1) falls to zero, and the state does not. The equation takes the share of tuples that are "
            "purged as that of the closed values among all values that have occurred, as if a tuple of the window "
            "had any of them with the same probability: right for values that recur evenly. In these streams a value "
            "is closed soon after it first occurs. When n values are closed, about ten are open, so that the "
            "estimate falls with 10 / (n + 10); but the tuples of the window have the values of the last segments, "
            "however large n is. Counted over the values of the window alone, the equation is flat. It is still an "
            "estimate, because open values have had fewer tuples than closed ones, and because an operator that "
            "compares in blocks holds tuples of closed values for a while. By Little's law the state of an operator "
            "that does not is the rate times the mean time until the other stream closes the value of a tuple, or "
            "until it leaves the window.",
        ),
        PaperFigure("pwjoin-state-5.svg", "Fig. 8, 5 s", "The same with a window of 5 s."),
        PaperFigure(
            "pwjoin-state-15.svg",
            "Fig. 8, 15 s",
            "With 15 s the window join has several times as many tuples; PJoin, without windows, about as many as "
            "PWJoin.",
        ),
        PaperFigure(
            "pwjoin-rate.svg",
            "Fig. 9",
            "With 5 s the window join is slightly faster; with 15 s PWJoin is clearly faster, because it probes a "
            "smaller state.",
            "A probe of an index by key does not take longer in a larger state. With 15 s, PWJoin is faster all the "
            "same: where all tuples of its state are within the windows, the times of pairs are not compared.",
        ),
        PaperFigure("pwjoin-irrelevant.svg", "Fig. 10", "Irrelevant punctuations cost little."),
        PaperFigure("pwjoin-propagation.svg", "Fig. 11", "PWJoin has more punctuations out than PJoin at all times."),
        PaperFigure(
            "pwjoin-one-sided.svg",
            "Fig. 12",
            "With punctuations in one stream alone, PJoin has none out, and PWJoin has them regularly.",
        ),
    ),
    "JIT: just-in-time processing of continuous queries": (
        PaperFigure(
            "jit-10.svg",
            "Fig. 10",
            "Bushy plans by the size of the window: feedback takes less than a tenth of the processor time and up to "
            "62 % less memory; more so with longer windows.",
            "The paper's joins are nested loops (scanned states). With an index by key, intermediate results are so "
            "cheap that feedback saves memory only.",
        ),
        PaperFigure("jit-11.svg", "Fig. 11", "The same by the rate of the streams: more so with higher rates."),
        PaperFigure(
            "jit-12.svg", "Fig. 12", "The same by the number of sources: costs grow more slowly with feedback."
        ),
        PaperFigure("jit-13.svg", "Fig. 13", "The same by the number of values: with more values both cost less."),
        PaperFigure(
            "jit-14.svg",
            "Fig. 14",
            "Left-deep plans with few values by the size of the window: many results have partners, and feedback is "
            "still cheaper, above all with long windows.",
        ),
        PaperFigure("jit-15.svg", "Fig. 15", "The same by the rate of the streams."),
        PaperFigure("jit-16.svg", "Fig. 16", "The same by the number of sources: feedback scales better."),
        PaperFigure("jit-17.svg", "Fig. 17", "The same by the number of values: few values cost less with feedback."),
    ),
    "Data Stream Sharing (StreamGlobe)": (
        PaperFigure(
            "sharing-traffic.svg",
            "Fig. 5, traffic",
            "A 4×4 grid of peers, two streams and 100 random queries: with stream sharing, less crosses the network "
            "than with data shipping and query shipping.",
            "The logarithmic axis shows links that sharing leaves unused as zero.",
        ),
        PaperFigure(
            "sharing-load.svg",
            "Fig. 5, load",
            "Sharing avoids redundant execution of operators.",
            "With query shipping, the peers at which the streams arrive have all of the load.",
        ),
        PaperFigure(
            "federation-bytes.svg",
            "Queries 1 to 4, bytes of each link",
            "Queries that need parts of a stream share one flow on each link, as in the paper's example network.",
            "Four servers over HTTP: the stream lives at A, the queries are at C, D, B and A.",
        ),
    ),
}
"""The figures of each paper, in its order."""


def figures_page(results: Path = RESULTS) -> str:
    """The text of the page: the figures whose plots exist."""
    lines = [
        "# The papers' figures, measured again",
        "",
        "Each figure of the papers that Tureen builds on, rerun on this engine by `make bench`, beside what the paper",
        "concludes from it. Absolute numbers are those of other machines and other systems: compare the shapes. The",
        "conditions of the runs are in [benchmarks/results](../benchmarks/results).",
        "",
    ]
    for paper, figures in PAPERS.items():
        drawn = [figure for figure in figures if (results / figure.file).exists()]
        if drawn:
            lines += [f"## {paper}", ""]
        for figure in drawn:
            remark = f" *Here:* {figure.remark}" if figure.remark else ""
            lines += [
                f"### {figure.number}",
                "",
                f"*The paper:* {figure.claim}{remark}",
                "",
                f"![{figure.number}](../benchmarks/results/{figure.file})",
                "",
            ]
    return "\n".join(lines)


def write() -> None:
    """Write the page."""
    PAGE.write_text(figures_page())


if __name__ == "__main__":
    write()
