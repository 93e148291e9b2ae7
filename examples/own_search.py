"""A search of one's own: tunes a model by it. own_search.py [MODEL [SECONDS]]"""

import sys

import hone


class Climb(hone.Search):
    """Goes from a point to its best neighbour, and elsewhere when none is better."""

    def look(self, run):
        at, idle = run.best, 0
        while idle < 100:  # turns that met nothing new
            trials = run.trials
            steps = [run.step(at) for _ in range(run.batch)]
            around = [point for point in steps if point is not None]
            if not run.price(around):
                return  # the budget is spent
            best = min(around, key=run.cost, default=at)
            if run.cost(best) < run.cost(at):
                at = best
            else:
                at = run.draw() or run.best
            idle = idle + 1 if run.trials == trials else 0


source = sys.argv[1] if len(sys.argv) > 1 else "zoo:mlp,size=tiny"
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
print(hone.tune(source, seconds=seconds, search=Climb(), only="schedules"))
