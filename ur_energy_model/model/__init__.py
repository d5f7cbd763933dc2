"""What the arm is: rigid bodies, drives, friction and energy."""
