"""What the robot says, moving and at rest."""
