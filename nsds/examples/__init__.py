"""Built-in examples: plain functions that return a record (or an ensemble), how to run each, and its picture."""

from typing import NamedTuple

from nsds.examples import american_put as _put
from nsds.examples import bouncing_ball as _ball
from nsds.examples import box_stack as _stack
from nsds.examples import buck_converter as _buck
from nsds.examples import burridge_knopoff as _fault
from nsds.examples import cam_bifurcation as _bifurcation
from nsds.examples import cam_follower as _cam
from nsds.examples import cart_pole as _poles
from nsds.examples import circuit_rlcd as _rlcd
from nsds.examples import clutch as _clutch
from nsds.examples import column_of_beads as _column
from nsds.examples import compass_walker as _walker
from nsds.examples import conveyor as _conveyor
from nsds.examples import diode_bridge as _bridge
from nsds.examples import docking as _docking
from nsds.examples import dominoes as _dominoes
from nsds.examples import door_latch as _latch
from nsds.examples import double_pendulum as _pendulum
from nsds.examples import dzhanibekov as _nut
from nsds.examples import eccentric_cam as _eccentric
from nsds.examples import euler_disk as _coin
from nsds.examples import filippov_spiral as _spiral
from nsds.examples import filtered_bridge as _filtered
from nsds.examples import friction_oscillator as _friction
from nsds.examples import gas_piston as _piston
from nsds.examples import gene_network as _genes
from nsds.examples import grain_hopper as _grains
from nsds.examples import gripper as _gripper
from nsds.examples import guitar_string as _string
from nsds.examples import hertz_roller as _hertz
from nsds.examples import hopper as _hopper
from nsds.examples import ideal_switch as _switch
from nsds.examples import impacting_bar as _bar
from nsds.examples import impacting_stick as _stick
from nsds.examples import jammed_motor as _motor
from nsds.examples import masonry_arch as _masonry
from nsds.examples import melting_front as _melting
from nsds.examples import membrane_obstacle as _membrane
from nsds.examples import planetary_gear as _gear
from nsds.examples import relay_oscillator as _oscillator
from nsds.examples import rotating_drum as _drum
from nsds.examples import sandpile as _sand
from nsds.examples import sheared_block as _block
from nsds.examples import six_axis_arm as _six_axes
from nsds.examples import slider_crank as _crank
from nsds.examples import slider_crank_3d as _crank_3d
from nsds.examples import sliding_ball as _sliding
from nsds.examples import solenoid_valve as _valve
from nsds.examples import spinning_disk as _disk
from nsds.examples import suspended_car as _car
from nsds.examples import third_order_stop as _stop
from nsds.examples import twisting_controller as _twisting
from nsds.examples import two_link_manipulator as _arm
from nsds.examples import voltage_multiplier as _multiplier
from nsds.examples import water_network as _water
from nsds.examples import woodpecker as _woodpecker
from nsds.examples.american_put import american_put
from nsds.examples.bouncing_ball import bouncing_ball
from nsds.examples.box_stack import box_stack
from nsds.examples.buck_converter import buck_converter
from nsds.examples.burridge_knopoff import burridge_knopoff, burridge_knopoff_moments
from nsds.examples.cam_bifurcation import cam_bifurcation
from nsds.examples.cam_follower import cam_follower, cam_motion
from nsds.examples.cart_pole import CartPoles, cart_pole
from nsds.examples.circuit_rlcd import circuit_rlcd, circuit_rlcd_energies
from nsds.examples.clutch import clutch
from nsds.examples.column_of_beads import column_of_beads
from nsds.examples.compass_walker import compass_walker
from nsds.examples.conveyor import conveyor
from nsds.examples.diode_bridge import diode_bridge
from nsds.examples.docking import docking
from nsds.examples.dominoes import dominoes
from nsds.examples.door_latch import door_latch
from nsds.examples.double_pendulum import double_pendulum
from nsds.examples.dzhanibekov import dzhanibekov
from nsds.examples.eccentric_cam import eccentric_cam
from nsds.examples.euler_disk import euler_disk
from nsds.examples.filippov_spiral import filippov_spiral
from nsds.examples.filtered_bridge import filtered_bridge
from nsds.examples.friction_oscillator import friction_oscillator
from nsds.examples.gas_piston import gas_piston
from nsds.examples.gene_network import gene_network
from nsds.examples.grain_hopper import grain_hopper
from nsds.examples.gripper import gripper
from nsds.examples.guitar_string import guitar_string
from nsds.examples.hertz_roller import hertz_roller
from nsds.examples.hopper import hopper, hopper_apex, hopper_thrusts
from nsds.examples.ideal_switch import ideal_switch
from nsds.examples.impacting_bar import impacting_bar
from nsds.examples.impacting_stick import impacting_stick
from nsds.examples.jammed_motor import jammed_motor
from nsds.examples.masonry_arch import masonry_arch
from nsds.examples.melting_front import melting_front, melting_front_exact
from nsds.examples.membrane_obstacle import membrane_obstacle
from nsds.examples.planetary_gear import planetary_gear
from nsds.examples.relay_oscillator import relay_oscillator
from nsds.examples.rotating_drum import rotating_drum
from nsds.examples.sandpile import sandpile
from nsds.examples.sheared_block import sheared_block
from nsds.examples.six_axis_arm import six_axis_arm
from nsds.examples.slider_crank import slider_crank
from nsds.examples.slider_crank_3d import slider_crank_3d
from nsds.examples.sliding_ball import sliding_ball
from nsds.examples.solenoid_valve import solenoid_valve
from nsds.examples.spinning_disk import spinning_disk
from nsds.examples.suspended_car import suspended_car
from nsds.examples.third_order_stop import third_order_stop
from nsds.examples.twisting_controller import twisting_controller
from nsds.examples.two_link_manipulator import two_link_manipulator
from nsds.examples.voltage_multiplier import voltage_multiplier
from nsds.examples.water_network import water_network
from nsds.examples.woodpecker import woodpecker

__all__ = [
    "EXAMPLES",
    "CartPoles",
    "american_put",
    "bouncing_ball",
    "box_stack",
    "buck_converter",
    "burridge_knopoff",
    "burridge_knopoff_moments",
    "cam_bifurcation",
    "cam_follower",
    "cam_motion",
    "cart_pole",
    "circuit_rlcd",
    "circuit_rlcd_energies",
    "clutch",
    "column_of_beads",
    "compass_walker",
    "conveyor",
    "diode_bridge",
    "docking",
    "dominoes",
    "door_latch",
    "double_pendulum",
    "dzhanibekov",
    "eccentric_cam",
    "euler_disk",
    "filippov_spiral",
    "filtered_bridge",
    "friction_oscillator",
    "gas_piston",
    "gene_network",
    "grain_hopper",
    "gripper",
    "guitar_string",
    "hertz_roller",
    "hopper",
    "hopper_apex",
    "hopper_thrusts",
    "ideal_switch",
    "impacting_bar",
    "impacting_stick",
    "jammed_motor",
    "masonry_arch",
    "melting_front",
    "melting_front_exact",
    "membrane_obstacle",
    "planetary_gear",
    "relay_oscillator",
    "rotating_drum",
    "sandpile",
    "sheared_block",
    "six_axis_arm",
    "slider_crank",
    "slider_crank_3d",
    "sliding_ball",
    "solenoid_valve",
    "spinning_disk",
    "suspended_car",
    "third_order_stop",
    "twisting_controller",
    "two_link_manipulator",
    "voltage_multiplier",
    "water_network",
    "woodpecker",
]


class Example(NamedTuple):
    """An example: ``build(**parameters)`` gives the record, ``simulate(record, **run)`` a run, ``draw(record, trajectory)`` its figure."""

    build: object
    run: dict
    draw: object


# A new example is one module and one line here; the command line and the tests pick it up.
EXAMPLES = {
    "bouncing_ball": Example(bouncing_ball, _ball.RUN, _ball.draw),
    "cam_follower": Example(cam_follower, _cam.RUN, _cam.draw),
    "cam_bifurcation": Example(cam_bifurcation, _bifurcation.RUN, _bifurcation.draw),
    "column_of_beads": Example(column_of_beads, _column.RUN, _column.draw),
    "burridge_knopoff": Example(burridge_knopoff, _fault.RUN, _fault.draw),
    "impacting_bar": Example(impacting_bar, _bar.RUN, _bar.draw),
    "sheared_block": Example(sheared_block, _block.RUN, _block.draw),
    "double_pendulum": Example(double_pendulum, _pendulum.RUN, _pendulum.draw),
    "slider_crank": Example(slider_crank, _crank.RUN, _crank.draw),
    "woodpecker": Example(woodpecker, _woodpecker.RUN, _woodpecker.draw),
    "impacting_stick": Example(impacting_stick, _stick.RUN, _stick.draw),
    "hopper": Example(hopper, _hopper.RUN, _hopper.draw),
    "spinning_disk": Example(spinning_disk, _disk.RUN, _disk.draw),
    "guitar_string": Example(guitar_string, _string.RUN, _string.draw),
    "cart_pole": Example(cart_pole, _poles.RUN, _poles.draw),
    "two_link_manipulator": Example(two_link_manipulator, _arm.RUN, _arm.draw),
    "sliding_ball": Example(sliding_ball, _sliding.RUN, _sliding.draw),
    "dzhanibekov": Example(dzhanibekov, _nut.RUN, _nut.draw),
    "slider_crank_3d": Example(slider_crank_3d, _crank_3d.RUN, _crank_3d.draw),
    "eccentric_cam": Example(eccentric_cam, _eccentric.RUN, _eccentric.draw),
    "gas_piston": Example(gas_piston, _piston.RUN, _piston.draw),
    "planetary_gear": Example(planetary_gear, _gear.RUN, _gear.draw),
    "suspended_car": Example(suspended_car, _car.RUN, _car.draw),
    "six_axis_arm": Example(six_axis_arm, _six_axes.RUN, _six_axes.draw),
    "gripper": Example(gripper, _gripper.RUN, _gripper.draw),
    "euler_disk": Example(euler_disk, _coin.RUN, _coin.draw),
    "box_stack": Example(box_stack, _stack.RUN, _stack.draw),
    "dominoes": Example(dominoes, _dominoes.RUN, _dominoes.draw),
    "masonry_arch": Example(masonry_arch, _masonry.RUN, _masonry.draw),
    "compass_walker": Example(compass_walker, _walker.RUN, _walker.draw),
    "rotating_drum": Example(rotating_drum, _drum.RUN, _drum.draw),
    "grain_hopper": Example(grain_hopper, _grains.RUN, _grains.draw),
    "conveyor": Example(conveyor, _conveyor.RUN, _conveyor.draw),
    "clutch": Example(clutch, _clutch.RUN, _clutch.draw),
    "docking": Example(docking, _docking.RUN, _docking.draw),
    "door_latch": Example(door_latch, _latch.RUN, _latch.draw),
    "diode_bridge": Example(diode_bridge, _bridge.RUN, _bridge.draw),
    "filtered_bridge": Example(filtered_bridge, _filtered.RUN, _filtered.draw),
    "circuit_rlcd": Example(circuit_rlcd, _rlcd.RUN, _rlcd.draw),
    "ideal_switch": Example(ideal_switch, _switch.RUN, _switch.draw),
    "voltage_multiplier": Example(voltage_multiplier, _multiplier.RUN, _multiplier.draw),
    "buck_converter": Example(buck_converter, _buck.RUN, _buck.draw),
    "jammed_motor": Example(jammed_motor, _motor.RUN, _motor.draw),
    "solenoid_valve": Example(solenoid_valve, _valve.RUN, _valve.draw),
    "relay_oscillator": Example(relay_oscillator, _oscillator.RUN, _oscillator.draw),
    "friction_oscillator": Example(friction_oscillator, _friction.RUN, _friction.draw),
    "filippov_spiral": Example(filippov_spiral, _spiral.RUN, _spiral.draw),
    "third_order_stop": Example(third_order_stop, _stop.RUN, _stop.draw),
    "twisting_controller": Example(twisting_controller, _twisting.RUN, _twisting.draw),
    "gene_network": Example(gene_network, _genes.RUN, _genes.draw),
    "american_put": Example(american_put, _put.RUN, _put.draw),
    "membrane_obstacle": Example(membrane_obstacle, _membrane.RUN, _membrane.draw),
    "melting_front": Example(melting_front, _melting.RUN, _melting.draw),
    "sandpile": Example(sandpile, _sand.RUN, _sand.draw),
    "water_network": Example(water_network, _water.RUN, _water.draw),
    "hertz_roller": Example(hertz_roller, _hertz.RUN, _hertz.draw),
}


def __dir__():
    return __all__
