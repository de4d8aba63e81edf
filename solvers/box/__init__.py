"""Problems of scalar rows with bounds: one signature, one merit function, a module a method."""
