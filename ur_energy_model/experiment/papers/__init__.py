"""All protocols at once, and the page that puts the papers beside what was obtained."""
