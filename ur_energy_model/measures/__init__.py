"""What can be done for less energy: measures, what each of them saves, and how sure that is."""
