"""An industrial arm with six axes, from its description in URDF: servos take it from one pose to another, and hold it there."""

from nsds.model.assembly import system
from nsds.model.laws import force_law
from nsds.model.robots import robot
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 2.0, "h": 1e-3}

_GRAVITY = 9.81
JOINTS = ("waist", "shoulder", "elbow", "forearm_roll", "wrist_bend", "tool_roll")
START = dict(zip(JOINTS, (0.0, -0.6, 0.9, 0.0, 0.3, 0.0), strict=True))
TARGET = dict(zip(JOINTS, (0.8, 0.4, 0.2, 1.0, -0.7, 2.0), strict=True))
STIFFNESS = dict(zip(JOINTS, (2e4, 4e4, 2e4, 4e3, 3e3, 1e3), strict=True))  # of the servos (N m/rad)
_TIME = 1.2  # of the motion (s)
URDF = """
<robot name="six_axis_arm">
  <link name="pedestal"/>
  <link name="column">
    <inertial>
      <origin xyz="0.05 0 0.28" rpy="0 0.1 0"/> <mass value="120"/>
      <inertia ixx="4.1" iyy="4.6" izz="3.2" ixy="0.05" ixz="-0.2" iyz="0.02"/>
    </inertial>
  </link>
  <link name="upper_arm">
    <inertial>
      <origin xyz="0.01 -0.12 0.33" rpy="0 0.05 0.1"/> <mass value="65"/>
      <inertia ixx="5.2" iyy="5.0" izz="0.7" ixy="0.02" ixz="0.1" iyz="-0.08"/>
    </inertial>
  </link>
  <link name="elbow_block">
    <inertial>
      <origin xyz="0.06 0.02 0.08"/> <mass value="42"/> <inertia ixx="0.8" iyy="0.9" izz="0.7"/>
    </inertial>
  </link>
  <link name="forearm">
    <inertial>
      <origin xyz="0.31 0 0" rpy="0.2 0 0"/> <mass value="28"/> <inertia ixx="0.18" iyy="1.4" izz="1.45" ixz="0.03"/>
    </inertial>
  </link>
  <link name="wrist">
    <inertial>
      <origin xyz="0.03 0 0"/> <mass value="7"/> <inertia ixx="0.02" iyy="0.026" izz="0.024"/>
    </inertial>
  </link>
  <link name="flange">
    <inertial>
      <origin xyz="0.01 0 0"/> <mass value="1.2"/> <inertia ixx="0.0018" iyy="0.001" izz="0.001"/>
    </inertial>
  </link>
  <link name="tool">
    <inertial>
      <origin xyz="0.09 0 0.02" rpy="0 0.3 0"/> <mass value="6"/> <inertia ixx="0.02" iyy="0.035" izz="0.03"/>
    </inertial>
  </link>
  <joint name="waist" type="revolute">
    <parent link="pedestal"/> <child link="column"/> <origin xyz="0 0 0.3"/> <axis xyz="0 0 1"/>
    <limit lower="-2.9" upper="2.9" effort="1200" velocity="2"/>
  </joint>
  <joint name="shoulder" type="revolute">
    <parent link="column"/> <child link="upper_arm"/> <origin xyz="0.15 0 0.35"/> <axis xyz="0 1 0"/>
    <limit lower="-1.6" upper="1.9" effort="1500" velocity="2"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper_arm"/> <child link="elbow_block"/> <origin xyz="0 0 0.7"/> <axis xyz="0 1 0"/>
    <limit lower="-1.2" upper="2.8" effort="800" velocity="2"/>
  </joint>
  <joint name="forearm_roll" type="continuous">
    <parent link="elbow_block"/> <child link="forearm"/> <origin xyz="0.1 0 0.11"/> <axis xyz="1 0 0"/>
  </joint>
  <joint name="wrist_bend" type="revolute">
    <parent link="forearm"/> <child link="wrist"/> <origin xyz="0.62 0 0"/> <axis xyz="0 1 0"/>
    <limit lower="-2.1" upper="2.1" effort="150" velocity="4"/>
  </joint>
  <joint name="tool_roll" type="continuous">
    <parent link="wrist"/> <child link="flange"/> <origin xyz="0.085 0 0"/> <axis xyz="1 0 0"/>
  </joint>
  <joint name="tool_changer" type="fixed">
    <parent link="flange"/> <child link="tool"/> <origin xyz="0.02 0 0" rpy="0 0.1 0"/>
  </joint>
</robot>
"""


def servo(t, y, ydot, z, out):
    """Stiffness z[0] and damping z[1] about a displacement of z[2] within the time z[3], which starts and ends at rest."""
    s = min(t / z[3], 1.0)
    y_wanted = z[2] * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rate = z[2] / z[3] * 30.0 * s**2 * (1.0 - s) ** 2
    out[0] = z[0] * (y_wanted - y[0]) + z[1] * (rate - ydot[0])


def six_axis_arm(stiffness=1.0, damping=0.05):
    """Arm of 270 kg that reaches 2 m, as it welds car bodies: its six servos move it, and carry its weight.

    Parameters
    ----------
    stiffness : float
        Of all servos, times that of this arm.
    damping : float
        Of the servos, over their stiffness (s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``column``, ``upper_arm``, ``elbow_block``, ``forearm``, ``wrist`` and ``flange``, which has the tool, and for
        each joint J of ``JOINTS`` the interactions ``J``, ``J_motor`` and, where it has any, ``J_stops``.

    Raises
    ------
    ImportError
        yourdfpy, which reads URDF (extra ``urdf``), is not installed.

    Notes
    -----
    At rest the servos are off their targets by the moments of the weight over their stiffnesses.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.six_axis_arm(), **nsds.examples.EXAMPLES["six_axis_arm"].run)
    >>> float((rows["shoulder_motor"]["lambda"][-1] / 1e-3).round(1))  # N m
    -573.8
    """
    motors = {
        joint: force_law(servo, z=[stiffness * k, damping * stiffness * k, TARGET[joint] - START[joint], _TIME])
        for joint, k in STIFFNESS.items()
    }
    return system(gravity=[0, 0, -_GRAVITY], **robot(URDF, q=START, motors=motors))


def draw(system, trajectory):
    """Angles since the start, and moments of the servos."""
    drawing, axes = figure(2, sharex=True)
    h = trajectory["t"][1] - trajectory["t"][0]
    for joint in JOINTS:
        time_series(trajectory, f"{joint}_motor.y", ax=axes[0])
        axes[1].plot(trajectory["t"][1:], trajectory[f"{joint}_motor"]["lambda"][1:] / h, label=joint)
    axes[0].set_ylabel("angle (rad)")
    axes[1].set_ylabel("moment (N m)")
    axes[1].set_xlabel("t (s)")
    axes[1].legend(fontsize=7)
    return drawing
