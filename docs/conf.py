"""Sphinx configuration: `make docs` builds with warnings as errors."""

project = "ur_energy_model"
author = "ur_energy_model maintainers"
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "ur_energy_model"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b7285", "color-brand-content": "#0b7285"},
    "dark_css_variables": {"color-brand-primary": "#4cc3d4", "color-brand-content": "#4cc3d4"},
}
nitpicky = True
