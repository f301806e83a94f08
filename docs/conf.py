"""How Sphinx builds the site; ``make docs`` runs it, and every warning is an error."""

project = "tipcheck"
author = "the tipcheck authors"
copyright = "the tipcheck authors, Apache-2.0"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3  # so that a page can link to a heading of another one

html_theme = "furo"
html_title = "tipcheck"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f6f5c", "color-brand-content": "#1f6f5c"},
    "dark_css_variables": {"color-brand-primary": "#5cc4a9", "color-brand-content": "#5cc4a9"},
}
