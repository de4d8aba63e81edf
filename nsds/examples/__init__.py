from nsds.examples.bouncing_ball import bouncing_ball
