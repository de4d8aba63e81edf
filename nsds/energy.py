def energy(): pass
def report(): pass
