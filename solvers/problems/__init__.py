"""Problems to test solvers on: families, files, profiles."""
