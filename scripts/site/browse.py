"""Open every page of the built site in headless Chromium at desktop and phone width.

    python -m scripts.site.browse [--pictures FOLDER]

A page that scrolls sideways, or that lacks its heading or a picture, is reported. With a folder, pictures of some
pages are put into it, to be looked at.
"""

import argparse
import functools
import http.server
import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_SITE = Path(__file__).resolve().parents[2] / "build/site"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WIDTHS = {"desktop": 1280, "phone": 390}
_PICTURED = (
    "",
    "first-cluster/",
    "constructs/capacity/",
    "constructs/network/",
    "operations/",
    "reference/settings/",
)
_FRAME = "_frame.html"
_SECONDS = 120
# Loads each page in a frame, looks at it in each width, and posts what it found.
_CHECK = """<body><script>
const pages = PAGES, widths = WIDTHS, found = [];
async function look() {
  for (let page; (page = pages.pop()) !== undefined;) {
    const frame = document.createElement("iframe");
    frame.src = "/" + page;
    frame.style.cssText = `width: ${widths[0]}px; height: 900px`;
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const inside = frame.contentDocument, root = inside.documentElement;
    for (const width of widths) {
      frame.style.cssText = `width: ${width}px; height: 900px`;
      if (root.scrollWidth > width) found.push([page, `is ${root.scrollWidth} px wide at ${width} px`]);
    }
    if (!inside.querySelector("article h1")) found.push([page, "has no heading"]);
    for (const picture of inside.images)
      if (picture.complete && !picture.naturalWidth) found.push([page, `lacks ${picture.getAttribute("src")}`]);
    frame.remove();
  }
}
Promise.all([look(), look(), look()]).then(() => fetch("/", {method: "POST", body: JSON.stringify(found)}));
</script>"""


def main(arguments: Sequence[str]) -> int:
    """Check the site, and take pictures where a folder is given; return the exit status.

    Args:
        arguments: The command's.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path)
    pictures = parser.parse_args(arguments).pictures
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print("The site was not opened in a browser: install Debian's package chromium for that.")
        return 0
    pages = sorted(
        page.relative_to(_SITE).as_posix().removesuffix("index.html") for page in _SITE.rglob("index.html")
    )
    with _Server() as server, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        run = functools.partial(_command, browser, profile)
        check = _CHECK.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(list(_WIDTHS.values())))
        with _frame(check), subprocess.Popen(run(server.address), stderr=subprocess.DEVNULL) as opened:
            problems = server.posted.get(timeout=_SECONDS)
            opened.terminate()
        for page in _PICTURED if pictures else ():
            for name, width in _WIDTHS.items():
                file = pictures.resolve() / f"{page.strip('/').replace('/', '-') or 'home'}-{name}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                with _frame(
                    f'<body style="margin: 0"><iframe src="/{page}" width="{width}" height="2200" frameborder="0">'
                ):
                    command = run(server.address, f"--window-size={max(width, 500)},2200", f"--screenshot={file}")
                    subprocess.run(command, stderr=subprocess.DEVNULL, check=True, timeout=_SECONDS)
    for page, problem in problems:
        print(f"/{page} {problem}")
    print(f"{len(pages)} pages opened at {' and '.join(map(str, _WIDTHS.values()))} px: {len(problems)} problems")
    return 1 if problems else 0


def _command(browser: str, profile: str, address: str, *options: str) -> list[str]:
    always = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}")
    return [browser, *always, *options, f"{address}/{_FRAME}"]


@contextmanager
def _frame(text: str) -> Iterator[None]:
    """Put a page beside the site's, for a while."""
    file = _SITE / _FRAME
    file.write_text(f"<!doctype html>{text}", encoding="utf-8")
    try:
        yield
    finally:
        file.unlink()


class _Server(http.server.ThreadingHTTPServer):
    """Serves the site on this machine, and keeps what its pages post."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(_Handler, directory=str(_SITE)))
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.posted = queue.Queue[list[tuple[str, str]]]()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no log."""

    def do_POST(self) -> None:
        """Take what a page found."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if isinstance(self.server, _Server):
            self.server.posted.put(json.loads(body))
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
