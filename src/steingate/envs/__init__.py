"""Native safety tasks on Gymnasium and MuJoCo."""
