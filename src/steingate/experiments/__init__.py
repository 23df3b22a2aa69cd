"""Many runs: grids of configurations, on this machine's cores or on a Ray cluster. Read ``grid`` first."""
