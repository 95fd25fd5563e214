"""A sweep's W&B workspace as code: what to look at, in the order in which one would."""

from collections.abc import Sequence
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.records import files, store
from bmg_sweeps.reporting import curves, expected_best
from bmg_sweeps.sweep import display
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.tracking import memory, points, session, sweeps


def workspace(chosen: Chosen, entity: str, project: str) -> Any:
    """Makes the workspace of a sweep; nothing is sent anywhere.

    Args:
        chosen: the sweep.
        entity: user or team whose project it is.
        project: that the runs are in.

    Returns:
        A `wandb_workspaces.workspaces.Workspace` of the runs of the sweep at its scale:
        learning curves by configuration, the best for each budget, parallel coordinates
        over the grid, and failures.
    """
    import wandb_workspaces.workspaces as ws

    return ws.Workspace(
        name=f"{points.stem(chosen)} ({chosen.choice.scale})",
        entity=entity,
        project=project,
        sections=[
            _section("Learning curves by configuration", _curves(chosen)),
            _section("Best per budget", _best(chosen)),
            _section("Grid", [_grid(chosen)], columns=1),
            _section("Failures", _failures(chosen)),
        ],
        settings=ws.WorkspaceSettings(
            x_axis=points.axis_of(chosen.sweep), max_runs=100
        ),
        runset_settings=_runs(chosen),
    )


def save_workspace(storage: files.Storage, chosen: Sequence[Chosen]) -> list[str]:
    """Saves the workspace of each sweep, in place of what was saved before.

    Args:
        storage: remembers which workspaces there are.
        chosen: the sweeps.

    Returns:
        A line for each: where it is.

    Raises:
        UserError: nobody is logged in, or W&B does not take it.
    """
    with session.opened():
        if not session.has_login():
            raise errors.UserError(
                "--workspace: expected a W&B login; log in with: wandb login"
            )
        try:
            return [_save_one(storage, one) for one in chosen]
        except Exception as error:
            reason = errors.described(error)
            raise errors.UserError(f"--workspace: not saved ({reason})") from error


def _save_one(storage: files.Storage, chosen: Chosen) -> str:
    import wandb
    import wandb_workspaces.workspaces as ws

    project = session.project()
    entity = wandb.setup().settings.entity or wandb.Api().default_entity
    made = workspace(chosen, entity, project)
    name = f"workspace-{sweeps.run_id(storage, chosen)}"
    known = memory.remembered(storage, name)
    if known.get("project") == [entity, project]:
        try:
            saved = ws.Workspace.from_url(known["url"])
        except Exception:  # It was deleted: it is saved anew.
            saved = made
        saved.name, saved.sections = made.name, made.sections
        saved.settings, saved.runset_settings = made.settings, made.runset_settings
        made = saved
    made.save()
    memory.remember(storage, name, {"url": made.url, "project": [entity, project]})
    return f"W&B workspace of {points.stem(chosen)}: {made.url}"


def _runs(chosen: Chosen) -> Any:
    """The runs of the sweep at its scale; those that failed come first and say why."""
    import wandb_workspaces.workspaces as ws

    return ws.RunsetSettings(
        filters=ws.And(ws.Tags().isin([points.tags_of(chosen)[1]])),
        order=[ws.Ordering(ws.Summary("failure"), ascending=False)],
        pinned_columns=[
            "run:displayName",
            "summary:status",
            "summary:failure",
            "config:method",
            f"summary:{points.key(chosen.sweep.select.metric)}",
        ],
    )


def _section(name: str, panels: Sequence[Any], columns: int = 2) -> Any:
    import wandb_workspaces.workspaces as ws

    layout = ws.SectionLayoutSettings(columns=columns, rows=2)
    return ws.Section(
        name=name, panels=list(panels), is_open=True, layout_settings=layout
    )


def _curves(chosen: Chosen) -> list[Any]:
    """One panel for each of the sweep's curves: mean and deviation over seeds."""
    import wandb_workspaces.reports.v2 as wr

    axis, over = points.axis_of(chosen.sweep), chosen.sweep.select.over
    # W&B averages runs only: where a seed has several, their deviation is another one.
    spread = f" (deviation over {' and '.join(over)})" if len(over) > 1 else ""
    panels = []
    for curve in curves.panels(chosen.sweep):
        if not isinstance(curve, display.Curve):
            continue  # The best have panels of their own.
        column = points.key(curve.metric)
        split = column.partition("/")[0]
        x = f"{split}/{axis}" if split in store.SPLITS else axis
        panels.append(
            wr.LinePlot(
                title=curve.title + spread,
                x=x,
                y=[column],
                title_x=axis,
                title_y=curve.label,
                range_x=(None, curve.until),
                groupby="Group",  # A run's group is its configuration.
                groupby_aggfunc="mean",
                groupby_rangefunc="stddev",
                aggregate=True,
                max_runs_to_show=100,
            )
        )
    return panels


def _best(chosen: Chosen) -> list[Any]:
    """The sweep's own run: each method's best over the budgets, then its tables."""
    import wandb_workspaces.reports.v2 as wr

    names, metric = sweeps.names(chosen), chosen.sweep.select.metric
    panels = [
        wr.LinePlot(
            title=f"Best by {metric} at each budget of {axis}",
            x=axis,
            y=list(of_methods),
            title_x=axis,
            title_y=metric,
        )
        for axis, of_methods in names.metrics.items()
    ]
    panels += [
        wr.LinePlot(
            title=f"{expected_best.TITLE}, held out",
            x=axis,
            y=list(of_methods),
            title_x=axis.rpartition("/")[2].replace("_", " "),
            title_y=metric,
        )
        for axis, of_methods in names.expected.items()
    ]
    return panels + [wr.WeavePanelSummaryTable(table_name=t) for t in names.tables]


def _grid(chosen: Chosen) -> Any:
    """Every tuned field, and the metric that decides as the last axis."""
    import wandb_workspaces.reports.v2 as wr

    symbols = {
        field: symbol.text
        for name, method in chosen.sweep.methods.items()
        if name in chosen.methods
        for field, symbol in method.symbols.items()
    }
    columns = [("method", "method"), *symbols.items()]
    made = [
        wr.ParallelCoordinatesPlotColumn(
            metric=wr.Config(field), display_name=symbol, log=_is_log(chosen, field)
        )
        for field, symbol in columns
    ]
    metric = chosen.sweep.select.metric
    made.append(
        wr.ParallelCoordinatesPlotColumn(
            metric=wr.SummaryMetric(points.key(metric)), display_name=metric
        )
    )
    return wr.ParallelCoordinatesPlot(title="Grid", columns=made)


def _is_log(chosen: Chosen, field: str) -> bool:
    """Whether a field's values are spread over more than a factor of ten."""
    values = [p.values.get(field) for p in chosen.points]
    are_positive = all(type(v) in (int, float) and v > 0 for v in values)
    return are_positive and max(values) > 10 * min(values)


def _failures(chosen: Chosen) -> list[Any]:
    """How many points failed, why they were left out, and how to find them."""
    import wandb_workspaces.reports.v2 as wr

    text = (
        "Points that failed or diverged are runs whose state is *failed*; the columns "
        "`status` and `failure` of the runs' table say why."
    )
    return [
        wr.BarPlot(
            title="Points that failed or diverged",
            metrics=["failed"],
            groupby=wr.Config("method"),
            groupby_aggfunc="sum",
        ),
        wr.WeavePanelSummaryTable(table_name=sweeps.names(chosen).left_out),
        wr.MarkdownPanel(markdown=text),
    ]
