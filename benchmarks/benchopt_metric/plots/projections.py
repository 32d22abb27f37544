"""Error against the number of projections, for the solvers that count them."""

from benchopt import BasePlot


class Plot(BasePlot):
    """Projections as an axis, which benchmarks of constrained problems usually do not have."""

    name = "Error against projections"
    type = "scatter"
    options = {"dataset": ..., "objective": ...}

    def plot(self, df, dataset, objective):
        """Return a curve for each solver, the median over repetitions."""
        chosen = df[(df["dataset_name"] == dataset) & (df["objective_name"] == objective)]
        chosen = chosen.dropna(subset=["objective_projections"])
        curves = []
        for solver, rows in chosen.groupby("solver_name"):
            points = rows.groupby("stop_val").median(numeric_only=True)
            points = points.sort_values("objective_projections")
            curve = {"x": points["objective_projections"].tolist(), "label": solver}
            curve["y"] = points["objective_value"].tolist()
            curves.append(curve | self.get_style(solver))
        return curves

    def get_metadata(self, df, dataset, objective):
        """Return titles and scales."""
        return {
            "title": f"{objective}, {dataset}",
            "xlabel": "projections on the constraint set",
            "ylabel": "relative suboptimality after the projection",
        }
