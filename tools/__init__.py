"""Developer tools: what writes generated files, figures and pages of the documentation."""
