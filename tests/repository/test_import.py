"""``import lopro`` stays light: whatever is large or optional loads when it is first needed."""

import re
import subprocess
import sys

import pytest

#: NumPy is needed by every call; everything else that takes long to import has to wait.
HEAVY = [
    "clarabel",
    "matplotlib",
    "pandas",
    "piqp",
    "rich",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "sklearn",
    "threadpoolctl",
    "torch",
]


def modules_after(statement: str) -> set[str]:
    script = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    command = [sys.executable, "-W", "error", "-c", script]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy():
    loaded = modules_after("import lopro")
    assert "numpy" in loaded
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize("name", ["scipy.sparse", "threadpoolctl"])
def test_the_check_would_see_what_a_solve_loads(name):
    """The list above is of names that a run does load: a misspelt name does not make the test above pass."""
    solved = "import lopro; lopro.bpdn([[2.0, 1.0]], [2.0], sigma=1.0)"
    assert name in modules_after(solved)


SOLVED = "import lopro; path = lopro.bpdn_path([[2.0, 1.0]], [2.0], [1.0]); result = path[0]"
#: The missing package, what is called without it, and what the error says.
MISSING = {
    "cvxpy": ("cvxpy", "import lopro.cvxpy", 'lopro.cvxpy needs CVXPY.*"lopro.cvxpy."'),
    "cvxpy by attribute": ("cvxpy", "import lopro; lopro.cvxpy", 'needs CVXPY.*"lopro.cvxpy."'),
    "sklearn": ("sklearn", "import lopro.sklearn", 'lopro.sklearn needs scikit-learn.*"lopro.sk'),
    "plot": ("matplotlib", f"{SOLVED}; result.plot()", 'plot needs matplotlib.*"lopro.plot."'),
    "curve": ("matplotlib", f"{SOLVED}; path.plot()", 'plot needs matplotlib.*"lopro.plot."'),
    "pandas": ("pandas", f"{SOLVED}; result.history.to_pandas()", 'needs pandas.*"pandas"'),
}


@pytest.mark.parametrize(("package", "statement", "message"), MISSING.values(), ids=MISSING)
def test_a_missing_package_says_what_to_install(package, statement, message):
    script = f"import sys; sys.modules[{package!r}] = None; {statement}"
    command = [sys.executable, "-c", script]
    error = subprocess.run(command, capture_output=True, text=True).stderr
    assert re.search(f"^ImportError: .*{message}", error, re.MULTILINE), error
