"""How the site is built: `make docs`, without network; a warning is an error."""

import os
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# `!dovetail ..` in a notebook runs inside its kernel, and fails the build if it fails
os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="dovetail-docs-")
STARTUP = Path(os.environ["IPYTHONDIR"], "profile_default", "startup", "shell.py")
STARTUP.parent.mkdir(parents=True)
STARTUP.write_text((HERE / "_ext" / "shell.py").read_text().replace("EXTENSIONS", repr(str(HERE / "_ext"))))
os.environ["NO_COLOR"] = "1"

from sphinxcontrib.katex import katex_version  # noqa: E402

import dovetail  # noqa: E402

warnings.filterwarnings("ignore", "Unknown section Source")  # which `generated` hands to numpydoc as References

if katex_version != (HERE / "_static" / "katex" / "VERSION").read_text().strip():
    raise SystemExit(f"docs/_static/katex must hold the style and fonts of KaTeX {katex_version}: see decision 0013.")
project = "Dovetail"
author = "The Dovetail authors"
project_copyright = "2026, The Dovetail authors"
release = version = dovetail.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinxcontrib.katex",
    "executed",
    "generated",
    "outside",
]
exclude_patterns = ["samples/**", "_static/**"]
smartquotes = False  # two hyphens are an option of the command line

# pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_execution_in_temp = True

# reference
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

# how it looks; nothing is loaded from elsewhere
html_theme = "furo"
html_title = "Dovetail"
html_favicon = html_logo = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5d8a", "color-brand-content": "#0b5d8a"},
    "dark_css_variables": {"color-brand-primary": "#79c0ea", "color-brand-content": "#79c0ea"},
}
katex_css_path = "katex/katex.min.css"
katex_options = "strict: 'error', throwOnError: true"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "a11y-high-contrast-light"  # enough contrast for axe-core
pygments_dark_style = "github-dark"
