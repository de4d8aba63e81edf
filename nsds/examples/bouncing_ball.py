"""A ball on the floor."""

from nsds.assembly import system
from nsds.interactions import interaction
from nsds.laws import newton_impact
from nsds.relations import lagrangian_linear_relation
from nsds.systems import lagrangian_linear


def bouncing_ball(height=1.0, e=0.9):
    return system(
        ball=lagrangian_linear(M=[[1.0, 0, 0], [0, 1, 0], [0, 0, 4e-3]], fext=[-9.81, 0, 0], q=[height, 0, 0], v=[0, 0, 0]),
        floor=interaction(lagrangian_linear_relation(H=[[1, 0, 0]]), newton_impact(e), on="ball"),
    )
