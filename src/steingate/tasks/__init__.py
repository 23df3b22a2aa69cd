"""Native Safety-Gymnasium and velocity tasks on Gymnasium and MuJoCo."""
