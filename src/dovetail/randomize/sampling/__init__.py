"""Tools of all randomizers: threshold and lookup kernels, domains, and parameters taken from the device's twin."""
