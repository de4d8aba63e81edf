"""The public description of what there is: tables of records and results, and, with a step, what the step costs."""

from nsds import _checks
from nsds.results.description import Description, table_of
from nsds.schemes.run.costs import costs_of


def describe(what, *, h=None, scheme=None, solver=None):
    """Table of a system, a trajectory, a part, a scheme or a result: parts, laws, sizes and values; with h, of what a step costs, too.

    Parameters
    ----------
    what : numpy.ndarray, dict or tuple
        A record from `nsds.system`, an ensemble of them, or rows from `nsds.simulate`; what constructors of parts, relations, laws, shapes,
        schemes and solvers return; results of analysis (`nsds.orbit`, branches, `nsds.lyapunov`, ...) and of solvers.
    h : float, optional
        Of a system, step of `nsds.simulate` for which it is prepared: see Notes.
    scheme, solver : numpy.ndarray, optional
        As of `nsds.simulate`; only with h.

    Returns
    -------
    Description
        Prints as a table, in a notebook as HTML; ``rows`` has its cells as texts. Values that differ between the members of an ensemble, or
        the rows of a trajectory, are shown by their range; of long arrays the first numbers and the shape; of matrices the shape where they
        are large. Functions of users are shown by name and arguments.

    Raises
    ------
    TypeError, ValueError
        None of these, or no rows; h without a system; a system that the scheme refuses, as for its memory.

    Notes
    -----
    With h the rows at the end tell the number of states; of each part how its iteration matrix is stored, and the fill of its factors; the
    one-step problem, which may have a matrix W of its rows, or be solved with the states in one (mixed, or bordered) sparse matrix, or by
    sweeps; the memory of a member; and the multiplications of a free motion, one solution with all iteration matrices and a product with
    each matrix of the record, and of an iteration of the one-step problem with all rows, however many it needs.

    Examples
    --------
    >>> import nsds
    >>> ball = nsds.examples.bouncing_ball()
    >>> nsds.describe(ball)
    system of 2 parts, Lagrangian, at t = 0 s
    part   what                                       field  value
    ball   lagrangian_linear                          q      [1 0 0]
                                                      v      [0 0 0]
                                                      M      diagonal [1 1 0.004]
                                                      fext   [-9.81 0 0]
    floor  lagrangian_linear_relation, newton_impact  H      [[1 0 0]]
           on ball                                    e      0.9
    >>> nsds.describe(nsds.newton_impact(e=0.8))
    newton_impact
    field  value
    e      0.8
    >>> nsds.describe(ball, h=1e-3).rows[-4]
    ('', 'one-step problem', 'matrix W of the rows', '1 rows, 1 entries, 100 % of all')
    """
    table = table_of(what)
    if h is None:
        if scheme is not None or solver is not None:
            raise ValueError("describe: scheme and solver need a step h")
        return table
    if table.columns != ("part", "what", "field", "value"):
        raise ValueError(f"describe: a step h is for systems, got {table.title}")
    h = _checks.number("describe", "h", h, above=0.0)
    return Description(table.title, table.columns, [*table.rows, *costs_of("describe", what, h, scheme, solver)])
