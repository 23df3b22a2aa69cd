"""What a picture of a task shows: the state of one simulation in, coloured shapes out.

The renderer asks the batched core for ``env.scene(i)``, a mapping of arrays that says all of simulation i:

``qpos``
    Point: (3,) x, y and heading in the world; Car: (13,) as in its model; velocity tasks: (nq,) of the
    robot's model.
``goal`` (1, 2), ``hazards`` (n, 2)
    places in the plane, where the task has them.
``vases`` (n, 7)
    position and quaternion of every vase.
``obs`` (d,), ``cost`` ()
    the observation shown last (its lidar blocks are drawn around the robot) and the cost of the last step.
"""
